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

/** Characters of one piece; a longer value is a piece of its own. */
const PIECE = 1 << 20;

/** In pieces, so that a value of hundreds of megabytes is not copied again just to be joined with its neighbours. */
export function encodeCopyText(rows: readonly Row[]): Buffer[] {
  const pieces: Buffer[] = [];
  let text = "";
  const add = (more: string): void => {
    text += more;
    if (text.length < PIECE) return;
    pieces.push(Buffer.from(text, "utf8"));
    text = "";
  };
  for (const row of rows) {
    add(encodeValue(row[0] ?? null));
    for (let column = 1; column < row.length; column++) {
      text += "\t";
      add(encodeValue(row[column] ?? null));
    }
    text += "\n";
  }
  if (text !== "") pieces.push(Buffer.from(text, "utf8"));
  return pieces;
}

export interface TakenRows {
  readonly bytes: Buffer;
  readonly count: number;
  /** True: the stream ends after them. */
  readonly isLast: boolean;
}

/** Cuts a stream of COPY text into batches of whole rows. Reads no further than it must. */
export class CopyTextReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer | undefined;

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Up to `limit` rows; fewer at the end, or once they reach `byteLimit` bytes. */
  async take(limit: number, byteLimit: number): Promise<TakenRows> {
    const parts: Buffer[] = [];
    let count = 0;
    let size = 0;
    let isRowEnd = true;
    while (count < limit && !(isRowEnd && size >= byteLimit)) {
      const chunk = this.#rest ?? (await this.#nextChunk());
      this.#rest = undefined;
      if (chunk === undefined) return { bytes: Buffer.concat(parts), count, isLast: true };
      let end = 0;
      do {
        const newline = chunk.indexOf(NEWLINE, end);
        isRowEnd = newline !== -1 || end === chunk.length;
        count += newline === -1 ? 0 : 1;
        end = newline === -1 ? chunk.length : newline + 1;
      } while (end < chunk.length && count < limit && size + end < byteLimit);
      parts.push(chunk.subarray(0, end));
      size += end;
      if (end < chunk.length) this.#rest = chunk.subarray(end);
    }
    return { bytes: Buffer.concat(parts), count, isLast: false };
  }

  async #nextChunk(): Promise<Buffer | undefined> {
    const { done, value } = await this.#chunks.next();
    return done ? undefined : value;
  }
}
