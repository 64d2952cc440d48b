import type { RowBatch } from "./row-batch.ts";

export interface ReadBatch extends RowBatch {
  /** True: nothing follows. */
  readonly isLast: boolean;
}

export interface SourceReader {
  /** Up to `limit` rows in order; fewer at the end, or when rows are so wide that they would fill the memory. */
  read(limit: number): Promise<ReadBatch>;
  close(): Promise<void>;
}
