import type { RowBatch } from "../connectors/row-batch.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { advance, record } from "./execute-batch.ts";
import type { Load } from "./load.ts";

interface AsideBatch {
  /** How many rows were read for it. */
  readonly read: number;
  readonly output: RowBatch;
  readonly readMs: number;
  readonly settledRejects: readonly number[];
}

/** Writes rows that were read beside the cursor: a batch like any other, but the position stays where it is. */
export async function writeAside(load: Load, { read, output, readMs, settledRejects }: AsideBatch): Promise<void> {
  const { position, batchNo } = load.progress;
  const place = { batchNo: batchNo + 1, after: null, upTo: null };
  const startedAt = performance.now();
  const rejected = await load.writer.write(output, place, async (transaction, result) => {
    const effort = { bytes: 0, read_ms: readMs, transform_ms: 0, write_ms: performance.now() - startedAt };
    const facts = { read, transformed: output.count, position, effort, settledRejects };
    await record(load, transaction, result, facts);
    return result.rejects.length;
  });
  await faultPoint("data_committed");
  await load.checkpointer.committed();
  advance(load, position, Math.max(0, rejected - settledRejects.length));
}
