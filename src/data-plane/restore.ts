import { VitrinaError } from "../domain/error-catalogue.ts";
import { parseTaskPlan } from "../domain/task-plan.ts";
import type { ExecutionEnd } from "./executor.ts";
import type { RunContext } from "./run-context.ts";

/** Brings back the target as it was before the last full load. */
export async function executeRestore({ parts, claim, pipeline, commit, control }: RunContext): Promise<ExecutionEnd> {
  const { target } = parseTaskPlan(pipeline, parts.targets);
  const sink = await parts.connectors.sink(target);
  if (sink.restorePrevious === undefined) {
    throw new VitrinaError("NOT_SUPPORTED", `${pipeline.target_table} keeps no previous state that could be restored.`);
  }
  const strategy = "restore the previous index";
  await commit.describeRun({ dataPath: null, strategy, estimatedRows: null, resumed: false });
  const { endSignal: lost } = control;
  await sink.restorePrevious({ target, restoreId: claim.firstRunId, lost, underLease: commit.underLease });
  return "finished";
}
