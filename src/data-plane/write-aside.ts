import type { RowBatch } from "../connectors/row-batch.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { advance, record } from "./execute-batch.ts";
import type { Load } from "./load.ts";
import type { RunReport } from "./run-report.ts";

interface AsideBatch {
  /** How many rows were read for it. */
  readonly read: number;
  readonly output: RowBatch;
  readonly readMs: number;
  readonly settledRejects: readonly number[];
}

/** Writes rows that were read beside the cursor: a batch like any other, but the position stays where it is. */
export async function writeAside(load: Load, batch: AsideBatch, report: RunReport): Promise<void> {
  const { read, output, readMs, settledRejects } = batch;
  const { position, batchNo: lastNo } = load.progress;
  const batchNo = lastNo + 1;
  await report.batch(async () => {
    const startedAt = performance.now();
    const effort = () => ({ bytes: 0, read_ms: readMs, transform_ms: 0, write_ms: performance.now() - startedAt });
    const place = { batchNo, after: null, upTo: null };
    const counters = await load.writer.write(output, place, (transaction, result) => {
      const facts = { read, transformed: output.count, position, effort: effort(), settledRejects };
      return record(load, transaction, result, facts);
    });
    await faultPoint("data_committed");
    await load.checkpointer.committed();
    advance(load, position, Math.max(0, counters.rows_rejected - settledRejects.length));
    return { batchNo, counters, effort: effort() };
  });
}
