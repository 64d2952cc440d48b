import type { RowBatch } from "../connectors/row-batch.ts";
import { writeBatch } from "./execute-batch.ts";
import type { Load } from "./run-context.ts";

interface AsideBatch {
  /** How many rows were read for it. */
  readonly read: number;
  readonly output: RowBatch;
  readonly readMs: number;
  readonly settledRejects: readonly number[];
}

/** Writes rows that were read outside the cursor's order: a batch like any other, but the position stays put. */
export async function writeAside(load: Load, { read, output, readMs, settledRejects }: AsideBatch): Promise<void> {
  const { position, batchNo } = load.progress;
  await load.report.batch(() => {
    const startedAt = performance.now();
    const effort = () => ({ bytes: 0, read_ms: readMs, transform_ms: 0, write_ms: performance.now() - startedAt });
    const place = { batchNo: batchNo + 1, after: null, upTo: null };
    return writeBatch(load, output, place, { read, transformed: output.count, position, effort, settledRejects });
  });
}
