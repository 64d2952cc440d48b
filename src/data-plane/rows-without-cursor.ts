import { transformed } from "./execute-batch.ts";
import type { Load } from "./run-context.ts";
import { writeAside } from "./write-aside.ts";

/**
 * With `null_cursor: each_run` the rows that have no place in the order of the cursor are read in every run, before
 * its batches. An interrupted run reads them again from the start; what is already in the target is not rewritten.
 */
export async function readRowsWithoutCursor(load: Load): Promise<void> {
  const { parts, pipeline, control, report, source, read } = load;
  const { incremental_key: key, batch_size } = pipeline;
  if (load.incremental === undefined || key === null || pipeline.null_cursor !== "each_run") return;
  // Rejects of earlier runs turn up again here; if they were kept, they would pile up with every run.
  let settledRejects = await parts.store.rejects.without(pipeline.id, key);
  const reader = await source.open({ ...read, after: null, nulls: "only" });
  let rows = 0;
  try {
    while (control.stopRequest() === undefined) {
      const startedAt = performance.now();
      const batch = await reader.read(batch_size);
      const readMs = performance.now() - startedAt;
      if (batch.count > 0 || settledRejects.length > 0) {
        const output = await transformed(load, batch);
        await writeAside(load, { read: batch.count, output, readMs, settledRejects });
      }
      settledRejects = [];
      rows += batch.count;
      if (batch.isLast) break;
    }
  } finally {
    await reader.close();
  }
  report.log.info({ rows }, "rows without an incremental key read");
}
