import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";

/** Newest first, without those that follow a full load by themselves because it was read in parts. */
export async function askedRuns(store: Pick<MetaStore, "runs">, id: PipelineId): Promise<Run[]> {
  const { items } = await store.runs.list(id, { limit: 100 });
  return items.filter(({ trigger }) => trigger !== "follow_up");
}
