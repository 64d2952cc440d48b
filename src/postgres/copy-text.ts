import type { Readable } from "node:stream";
import type { Row } from "../domain/row.ts";

/**
 * PostgreSQL's COPY text format: one line per row, tab between values, \N for null. Line breaks inside values are
 * escaped, so rows can be counted and cut at line ends without decoding anything.
 */

const NEWLINE = 0x0a;

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };
const ESCAPED: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

function decodeValue(text: string): string | null {
  if (text === "\\N") return null;
  return text.includes("\\") ? text.replace(/\\(.)/gs, (_, char: string) => ESCAPES[char] ?? char) : text;
}

const NEEDS_ESCAPE = /[\\\b\f\n\r\t\v]/;
const ALL_TO_ESCAPE = /[\\\b\f\n\r\t\v]/g;

function encodeValue(value: string | null): string {
  if (value === null) return "\\N";
  return NEEDS_ESCAPE.test(value) ? value.replace(ALL_TO_ESCAPE, (char) => ESCAPED[char] as string) : value;
}

export function decodeCopyText(bytes: Buffer): Row[] {
  const text = bytes.toString("utf8");
  if (text === "") return [];
  return text.slice(0, -1).split("\n").map(decodeLine);
}

function decodeLine(line: string): Row {
  const values = line.split("\t");
  return line.includes("\\") ? values.map(decodeValue) : values;
}

/** The last row alone: enough to know where a batch ends. */
export function decodeLastRow(bytes: Buffer): Row | undefined {
  if (bytes.length === 0) return undefined;
  const start = bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;
  return decodeLine(bytes.toString("utf8", start, bytes.length - 1));
}

export function encodeCopyText(rows: readonly Row[]): Buffer {
  let text = "";
  for (const row of rows) {
    text += encodeValue(row[0] ?? null);
    for (let column = 1; column < row.length; column++) text += `\t${encodeValue(row[column] ?? null)}`;
    text += "\n";
  }
  return Buffer.from(text, "utf8");
}

/** Cuts a stream of COPY text into batches of whole rows. Reads no further than it must. */
export class CopyTextReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer | undefined;

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  async take(limit: number): Promise<{ bytes: Buffer; count: number }> {
    const parts: Buffer[] = [];
    let count = 0;
    while (count < limit) {
      const chunk = this.#rest ?? (await this.#nextChunk());
      this.#rest = undefined;
      if (chunk === undefined) break;
      let end = 0;
      while (count < limit) {
        const newline = chunk.indexOf(NEWLINE, end);
        if (newline === -1) {
          end = chunk.length;
          break;
        }
        count += 1;
        end = newline + 1;
      }
      parts.push(chunk.subarray(0, end));
      if (end < chunk.length) this.#rest = chunk.subarray(end);
    }
    return { bytes: Buffer.concat(parts), count };
  }

  async #nextChunk(): Promise<Buffer | undefined> {
    const { done, value } = await this.#chunks.next();
    return done ? undefined : value;
  }
}
