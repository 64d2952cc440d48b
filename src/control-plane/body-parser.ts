import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Api } from "./api.ts";
import { requirePlainStructure } from "./json-structure.ts";

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
