import type { FollowRound } from "../../connectors/follower.ts";
import { endAskedFor } from "../../domain/pipeline-status.ts";
import { transformed } from "../execute-batch.ts";
import type { EarlyEnd, Load } from "../run-context.ts";
import { writeAside } from "../write-aside.ts";

/**
 * Has the target refuse all rows that the query has without a key, as a full load does: no row may be missing without
 * being named. Those that were refused before and are gone by now are settled. Returns why it stopped early, if it did.
 */
export async function refuseRowsWithoutKey(load: Load, round: FollowRound): Promise<EarlyEnd | undefined> {
  const { parts, pipeline, control, writer, progress } = load;
  const { rejects } = parts.store;
  const before = await Promise.all(writer.key.map((column) => rejects.without(pipeline.id, column)));
  let settledRejects = [...new Set(before.flat())];
  const reader = await round.openWithoutKey();
  try {
    for (;;) {
      const end = control.stopRequest();
      if (end !== undefined) return end;
      const startedAt = performance.now();
      const batch = await reader.read(progress.limits.batchSize);
      const readMs = performance.now() - startedAt;
      if (batch.count > 0 || settledRejects.length > 0) {
        const output = await transformed(load, batch);
        const { lease } = await writeAside(load, { read: batch.count, output, readMs, settledRejects });
        const asked = endAskedFor(lease.status);
        if (asked !== undefined) return asked;
      }
      settledRejects = [];
      if (batch.isLast) return undefined;
    }
  } finally {
    await reader.close();
  }
}
