import { batchOfRows, type RowBatch } from "../connectors/row-batch.ts";
import type { Comparison } from "../connectors/sink.ts";
import type { ReadRequest, Source } from "../connectors/source.ts";
import { faultPoint } from "../observability/fault-points.ts";
import type { Transform } from "../tasks/task.ts";

/** `pending`: the next run reads these rows. */
export type RowStanding = "settled" | "pending";

interface ReaderParts {
  readonly source: Source;
  /** Undefined if rows need not be looked at. */
  readonly transform: Transform | undefined;
  readonly comparison: Comparison;
  readonly batchSize: number;
  readonly signal: AbortSignal;
}

/** Reads rows of the source, and compares them with the target. */
export async function addRows(
  { source, transform, comparison, batchSize, signal }: ReaderParts,
  request: ReadRequest,
  standing: RowStanding,
  onRows: (rows: number) => Promise<void>,
): Promise<void> {
  const reader = await source.open(request);
  const closeReader = (): void => void reader.close();
  signal.addEventListener("abort", closeReader);
  const transformed = async (batch: RowBatch): Promise<RowBatch> =>
    transform === undefined ? batch : batchOfRows(await transform.apply(batch.rows(), signal));
  try {
    for (;;) {
      signal.throwIfAborted();
      const batch = await reader.read(batchSize);
      await comparison.add(await transformed(batch), standing);
      await onRows(batch.count);
      await faultPoint("reconcile_batch");
      if (batch.isLast) return;
    }
  } finally {
    signal.removeEventListener("abort", closeReader);
    await reader.close();
  }
}
