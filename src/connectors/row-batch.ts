import type { Row } from "../domain/row.ts";
import { decodeCopyText, decodeLastRow, encodeCopyText } from "../postgres/copy-text.ts";

/**
 * Rows on their way. They exist as bytes, as values, or both: what is never looked at is never decoded, so rows that
 * no task and no sink wants to see pass through as they came.
 */
export interface RowBatch {
  readonly count: number;
  rows(): readonly Row[];
  /** In pieces. */
  copyText(): readonly Buffer[];
  last(): Row | undefined;
}

/** Once decoded, the bytes are let go: a large row is not held twice. */
export function batchOfCopyText(bytes: Buffer, count: number): RowBatch {
  let encoded: Buffer | undefined = bytes;
  let decoded: readonly Row[] | undefined;
  const rows = (): readonly Row[] => {
    decoded ??= decodeCopyText(encoded ?? Buffer.alloc(0));
    encoded = undefined;
    return decoded;
  };
  return {
    count,
    rows,
    copyText: () => (encoded === undefined ? encodeCopyText(rows()) : [encoded]),
    last: () => (encoded === undefined ? rows().at(-1) : decodeLastRow(encoded)),
  };
}

export function batchOfRows(rows: readonly Row[]): RowBatch {
  let encoded: readonly Buffer[] | undefined;
  return {
    count: rows.length,
    rows: () => rows,
    copyText: () => {
      encoded ??= encodeCopyText(rows);
      return encoded;
    },
    last: () => rows.at(-1),
  };
}
