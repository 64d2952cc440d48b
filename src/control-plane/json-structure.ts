import { type Problem, VitrinaError } from "../domain/error-catalogue.ts";
import { invalidRequest } from "./validation.ts";

/** No request needs more; and code that follows a body to its depths must not be led further. */
const MAX_DEPTH = 32;

/** Of JSON that parses, strings and punctuation are all that matters here. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(?<colon>\s*:)?|[{}[\],]/gy;
const OTHER = /[^"{}[\],]*/gy;

interface JsonLevel {
  /** The keys of an object so far; `undefined` in a list. */
  readonly keys: Set<string> | undefined;
  /** The key or the index where we are. */
  at: string | number;
}

/**
 * Refuses what JSON allows but nobody means: the same key twice, of which one would be ignored, and `__proto__`, which
 * careless code takes for more than a key. `text` must be valid JSON.
 */
export function requirePlainStructure(text: string): void {
  const levels: JsonLevel[] = [];
  const pointer = (): string =>
    levels.map(({ at }) => `/${String(at).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  for (const { token, isKey } of tokensOf(text)) {
    const level = levels.at(-1);
    if (token === "{" || token === "[") {
      if (levels.length === MAX_DEPTH) throw tooDeep();
      levels.push(token === "{" ? { keys: new Set(), at: "" } : { keys: undefined, at: 0 });
    } else if (token === "}" || token === "]") {
      levels.pop();
    } else if (token === ",") {
      if (level !== undefined && typeof level.at === "number") level.at += 1;
    } else if (isKey && level?.keys !== undefined) {
      level.at = JSON.parse(token) as string;
      const message = messageAbout(level.at, level.keys);
      if (message !== undefined) throw invalidRequest("body", [{ pointer: pointer(), message } satisfies Problem]);
      level.keys.add(level.at);
    }
  }
}

function messageAbout(key: string, earlier: ReadonlySet<string>): string | undefined {
  if (key === "__proto__") return "Nothing of that name can be set here.";
  return earlier.has(key) ? "It is set twice." : undefined;
}

function* tokensOf(text: string): Generator<{ token: string; isKey: boolean }> {
  let position = 0;
  while (position < text.length) {
    OTHER.lastIndex = position;
    OTHER.exec(text);
    TOKEN.lastIndex = OTHER.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) return;
    position = TOKEN.lastIndex;
    const isKey = match.groups?.["colon"] !== undefined;
    yield { token: isKey ? match[0].replace(/\s*:$/, "") : match[0], isKey };
  }
}

function tooDeep(): VitrinaError {
  return new VitrinaError("MALFORMED_REQUEST", `The body is nested deeper than ${MAX_DEPTH} levels.`, {
    hint: "Send the fields that /docs describes.",
  });
}
