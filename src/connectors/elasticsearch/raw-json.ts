/** Reads JSON of the cluster without parsing the documents in it: JSON.parse would round their numbers. */

const SOURCE = '"_source":';

/**
 * Parses everything but the documents. Each `_source` is replaced by its index in `sources`, which holds them letter
 * by letter as they were sent.
 */
export function parseAroundSources(answer: string): { readonly parsed: unknown; readonly sources: readonly string[] } {
  const sources: string[] = [];
  let skeleton = "";
  let from = 0;
  for (let at = nextSource(answer, 0); at >= 0; at = nextSource(answer, from)) {
    const start = at + SOURCE.length;
    const end = endOfValue(answer, start);
    skeleton += `${answer.slice(from, start)}${sources.length}`;
    sources.push(answer.slice(start, end));
    from = end;
  }
  return { parsed: JSON.parse(skeleton + answer.slice(from)), sources };
}

/** The fields of an object, each value as it was written. */
export function fieldsOf(object: string): { readonly name: string; readonly value: string }[] {
  const fields: { name: string; value: string }[] = [];
  for (let at = object.indexOf('"'); at >= 0; at = object.indexOf('"', at)) {
    const endOfName = endOfString(object, at);
    const start = object.indexOf(":", endOfName) + 1;
    const end = endOfValue(object, start);
    fields.push({ name: JSON.parse(object.slice(at, endOfName)) as string, value: object.slice(start, end).trim() });
    at = end;
  }
  return fields;
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

/** The index where the value that begins at `at` ends: at a comma, or at the end of what it is in. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") depth += 1;
    else if (depth === 0 && (char === "," || char === "}" || char === "]")) return at;
    else if (char === "}" || char === "]") depth -= 1;
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
