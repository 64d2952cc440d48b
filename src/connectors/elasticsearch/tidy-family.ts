import type { Cluster } from "./cluster.ts";
import { changeAliases, dropIndex, type FamilyIndex, readFamily, removeAlias, writersOf } from "./index-family.ts";
import type { IndexOptions } from "./options.ts";

const DEFAULT_HOURS = 24;

/**
 * Deletes what no alias leads to, and the previous index once it was kept long enough; otherwise returns until when it
 * is kept.
 */
export async function tidyFamily(cluster: Cluster, name: string, options: IndexOptions): Promise<Date | null> {
  const { live, previous, orphans } = await readFamily(cluster, name);
  for (const { index } of orphans) await dropIndex(cluster, index);
  if (live === undefined || previous === undefined) return null;
  const keptUntil =
    Math.max(loadedAt(live), loadedAt(previous)) + (options.keep_previous_hours ?? DEFAULT_HOURS) * 3_600_000;
  if (Date.now() < keptUntil) return new Date(keptUntil);
  await dropIndex(cluster, previous.index);
  return null;
}

const loadedAt = ({ mark }: FamilyIndex): number => Date.parse(mark?.loaded?.at ?? "") || 0;

/** Ends everything a pipeline has under way here: unfinished loads are deleted, and it can write nothing more. */
export async function dropLoadsOf(cluster: Cluster, name: string, pipelineId: string): Promise<void> {
  const { live, loading } = await readFamily(cluster, name);
  for (const { index, mark } of loading) if (mark?.pipeline_id === pipelineId) await dropIndex(cluster, index);
  if (live === undefined) return;
  const writers = writersOf(live, name, pipelineId).map(({ alias }) => removeAlias(live.index, alias));
  if (writers.length > 0) await changeAliases(cluster, `stop writing to ${live.index}`, writers);
}
