import type { TargetOptions } from "../../domain/pipeline.ts";
import type { Cluster } from "./cluster.ts";
import { dropIndex, type FamilyIndex, readFamily } from "./index-family.ts";

const DEFAULT_HOURS = 24;

/** Deletes what no alias leads to any more, and the previous index when it was kept long enough. */
export async function tidyFamily(cluster: Cluster, name: string, options: TargetOptions): Promise<void> {
  const { live, previous, orphans } = await readFamily(cluster, name);
  for (const { index } of orphans) await dropIndex(cluster, index);
  if (live === undefined || previous === undefined) return;
  const keptUntil =
    Math.max(loadedAt(live), loadedAt(previous)) + (options.keep_previous_hours ?? DEFAULT_HOURS) * 3_600_000;
  if (Date.now() >= keptUntil) await dropIndex(cluster, previous.index);
}

const loadedAt = ({ mark }: FamilyIndex): number => Date.parse(mark?.loaded?.at ?? "") || 0;
