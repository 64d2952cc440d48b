import type { RowBatch } from "../connectors/row-batch.ts";
import type { TargetKey } from "../connectors/sink.ts";
import type { CommittedBatch } from "./commit.ts";
import { writeBatch } from "./execute-batch.ts";
import type { Load } from "./run-context.ts";

interface AsideBatch {
  /** How many rows were read for it. */
  readonly read: number;
  readonly output: RowBatch;
  readonly readMs: number;
  readonly settledRejects: readonly number[];
  /** What it stands for: the target's rows of these keys are deleted where it has none. */
  readonly keys?: readonly TargetKey[];
}

/** Writes rows that were read outside the cursor's order: a batch like any other, but the position stays put. */
export async function writeAside(load: Load, aside: AsideBatch): Promise<CommittedBatch> {
  const { read, output, readMs, settledRejects, keys } = aside;
  const { position, batchNo } = load.progress;
  return load.report.batch(() => {
    const startedAt = performance.now();
    const effort = () => ({ bytes: 0, read_ms: readMs, transform_ms: 0, write_ms: performance.now() - startedAt });
    const place = { batchNo: batchNo + 1, after: null, upTo: null };
    const facts = { read, transformed: output.count, position, effort, settledRejects, keys };
    return writeBatch(load, output, place, facts);
  });
}
