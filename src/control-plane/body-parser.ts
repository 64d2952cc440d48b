import { type Problem, VitrinaError } from "../domain/error-catalogue.ts";
import type { Api } from "./api.ts";
import { invalidRequest } from "./validation.ts";

const BODY_LIMIT_KIB = 256;
export const BODY_LIMIT_BYTES = BODY_LIMIT_KIB * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Bodies are JSON. An empty body counts as none whatever its content type says, because clients send that header with
 * requests such as `run`, too; where a body is needed, its schema asks for it.
 */
export function acceptJsonOnly(api: Api): void {
  api.removeAllContentTypeParsers();
  api.addContentTypeParser("application/json", { parseAs: "buffer" }, async (_: unknown, body: Buffer) =>
    body.length === 0 ? undefined : parseJson(body),
  );
  api.addContentTypeParser("*", { parseAs: "buffer" }, async (_: unknown, body: Buffer) => {
    if (body.length === 0) return undefined;
    throw unsupportedMediaType();
  });
}

export function bodyTooLarge(cause: unknown): VitrinaError {
  return new VitrinaError("BODY_TOO_LARGE", `The body is larger than ${BODY_LIMIT_KIB} KiB.`, { cause });
}

export function unsupportedMediaType(cause?: unknown): VitrinaError {
  return new VitrinaError("UNSUPPORTED_MEDIA_TYPE", "The body must be JSON, and its content type application/json.", {
    cause,
  });
}

function parseJson(body: Buffer): unknown {
  const { text, value } = readJson(body);
  requirePlainStructure(text);
  return value;
}

function readJson(body: Buffer): { text: string; value: unknown } {
  try {
    const text = utf8.decode(body);
    return { text, value: JSON.parse(text) };
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? cause.message : "It is not UTF-8";
    throw new VitrinaError("MALFORMED_REQUEST", `The body is not valid JSON: ${reason}.`, { cause });
  }
}

/** No request needs more, and recursive code must not be led deeper. */
const MAX_BODY_DEPTH = 32;

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
function requirePlainStructure(text: string): void {
  const levels: JsonLevel[] = [];
  const pointer = (): string =>
    levels.map(({ at }) => `/${String(at).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  for (const { token, isKey } of tokensOf(text)) {
    const level = levels.at(-1);
    if (token === "{" || token === "[") {
      if (levels.length === MAX_BODY_DEPTH) throw tooDeep();
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
  return new VitrinaError("MALFORMED_REQUEST", `The body is nested deeper than ${MAX_BODY_DEPTH} levels.`, {
    hint: "Send the fields that /docs describes.",
  });
}
