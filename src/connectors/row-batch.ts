import type { Row } from "../domain/row.ts";
import { decodeCopyText, decodeLastRow, encodeCopyText } from "../postgres/copy-text.ts";

/**
 * Rows in transit. They exist as bytes, as values, or both: rows that no task and no sink looks at are never decoded,
 * and pass through as they came.
 */
export interface RowBatch {
  readonly count: number;
  rows(): readonly Row[];
  /** In pieces. */
  copyText(): readonly Buffer[];
  first(): Row | undefined;
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
    first: () => (encoded === undefined ? rows()[0] : decodeFirstRow(encoded)),
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
    first: () => rows[0],
    last: () => rows.at(-1),
  };
}

function decodeFirstRow(bytes: Buffer): Row | undefined {
  return decodeCopyText(bytes.subarray(0, bytes.indexOf("\n") + 1))[0];
}
