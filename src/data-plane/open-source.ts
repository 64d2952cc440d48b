import type { Connectors } from "../connectors/index.ts";
import type { Source } from "../connectors/source.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { Column } from "../domain/row.ts";
import type { TaskPlan } from "../domain/task-plan.ts";

export interface OpenedSource {
  readonly source: Source;
  /** Of the reader query. */
  readonly columns: readonly Column[];
}

/** The only way to open a source: a run or a reconcile has its query examined here first. */
export async function openSource(
  connectors: Connectors,
  pipeline: Pipeline,
  { readerQuery }: TaskPlan,
  endSignal?: AbortSignal,
): Promise<OpenedSource> {
  const source = await connectors.source(pipeline, endSignal);
  try {
    return { source, columns: await source.examine(readerQuery) };
  } catch (error) {
    await source.close();
    throw error;
  }
}
