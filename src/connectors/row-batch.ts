import type { Row } from "../domain/row.ts";
import { decodeCopyText, decodeLastRow, encodeCopyText } from "../postgres/copy-text.ts";

/**
 * Rows on their way. They exist as bytes, as values, or both: what is never looked at is never decoded, so rows that
 * no task and no sink wants to see pass through as they came.
 */
export interface RowBatch {
  readonly count: number;
  rows(): readonly Row[];
  copyText(): Buffer;
  last(): Row | undefined;
}

export function batchOfCopyText(bytes: Buffer, count: number): RowBatch {
  let decoded: readonly Row[] | undefined;
  return {
    count,
    rows: () => {
      decoded ??= decodeCopyText(bytes);
      return decoded;
    },
    copyText: () => bytes,
    last: () => decodeLastRow(bytes),
  };
}

export function batchOfRows(rows: readonly Row[]): RowBatch {
  let encoded: Buffer | undefined;
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
