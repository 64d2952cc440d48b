import type { Source } from "../connectors/source.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { Column } from "../domain/row.ts";
import type { TaskPlan } from "../domain/task-plan.ts";
import { auditQuery } from "../sql-guard/guard.ts";
import type { EngineParts } from "./run-context.ts";

interface OpenedSource {
  readonly source: Source;
  /** Of the reader query. */
  readonly columns: readonly Column[];
}

/** The one way to a source: whoever reads it, a run or a reconcile, has its query checked here first. */
export async function openSource(
  { connectors, guard }: Pick<EngineParts, "connectors" | "guard">,
  { source_connection }: Pipeline,
  { readerQuery }: TaskPlan,
  endSignal?: AbortSignal,
): Promise<OpenedSource> {
  const source = connectors.source(source_connection, endSignal);
  if (source === undefined) {
    throw new VitrinaError("SOURCE_CONNECTION_UNKNOWN", `There is no source connection "${source_connection}".`);
  }
  try {
    // Again each time: a view may have been given another query since the pipeline was accepted.
    await source.lendSession((session) => auditQuery(session, readerQuery, guard));
    return { source, columns: await source.describe(readerQuery) };
  } catch (error) {
    await source.close();
    throw error;
  }
}
