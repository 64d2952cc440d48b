import { VitrinaError } from "../domain/error-catalogue.ts";
import { parseTaskPlan } from "../domain/task-plan.ts";
import type { BatchCommit } from "../meta-store/ports/batch-commit.ts";
import type { Claim } from "../meta-store/ports/run-queue.ts";
import type { ExecutorParts } from "./executor.ts";

/** Instead of a load: brings back the target as it was before the last full load. */
export async function restorePrevious(
  { connectors, targets }: ExecutorParts,
  { pipeline }: Claim,
  restoreId: string,
  commit: BatchCommit,
  lost: AbortSignal,
): Promise<void> {
  const { target } = parseTaskPlan(pipeline, targets);
  const sink = await connectors.sink(target);
  if (sink.restorePrevious === undefined) {
    throw new VitrinaError("NOT_SUPPORTED", `${pipeline.target_table} keeps nothing that could be restored.`);
  }
  const strategy = "restore the previous index";
  await commit.describeRun({ dataPath: "none", strategy, estimatedRows: null, resumed: false });
  await sink.restorePrevious({ target, restoreId, lost, underLease: commit.underLease });
}
