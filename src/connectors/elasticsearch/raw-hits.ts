/** A hit of a search, with its document as the exact text that was written. */
export interface RawHit {
  readonly id: string;
  readonly source: string;
  readonly sort: unknown;
}

interface ParsedHit {
  readonly _id: string;
  readonly sort?: unknown;
}

const SOURCE = '"_source":';

/**
 * The answer is parsed for everything but the documents: a cluster gives them back as they were sent, letter by letter,
 * and JSON.parse would round their numbers.
 */
export function readHits(answer: string): RawHit[] {
  const sources: string[] = [];
  let skeleton = "";
  let from = 0;
  for (let at = nextSource(answer, 0); at >= 0; at = nextSource(answer, from)) {
    const start = at + SOURCE.length;
    const end = endOfValue(answer, start);
    sources.push(answer.slice(start, end));
    skeleton += `${answer.slice(from, start)}0`;
    from = end;
  }
  const parsed = JSON.parse(skeleton + answer.slice(from)) as { hits: { hits: ParsedHit[] } };
  return parsed.hits.hits.map(({ _id, sort }, index) => ({ id: _id, source: sources[index] ?? "{}", sort }));
}

/** Outside of strings only: an id may contain anything. */
function nextSource(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] !== '"') continue;
    if (text.startsWith(SOURCE, at)) return at;
    at = endOfString(text, at) - 1;
  }
  return -1;
}

/** The end of the object that begins there. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  throw new SyntaxError("the answer ends within a document");
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  throw new SyntaxError("the answer ends within a string");
}
