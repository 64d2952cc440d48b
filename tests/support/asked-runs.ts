import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";

/** Newest first, without the automatic follow-ups of full loads that were read in parts. */
export async function askedRuns(store: Pick<MetaStore, "runs">, id: PipelineId): Promise<Run[]> {
  const { items } = await store.runs.list(id, { limit: 100 });
  return items.filter(({ trigger }) => trigger !== "follow_up");
}
