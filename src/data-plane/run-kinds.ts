import type { RunKind } from "../domain/run.ts";
import type { Claim } from "../meta-store/ports/run-queue.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { type ExecutionEnd, executePipeline } from "./executor.ts";
import { executeReconcile } from "./reconcile.ts";
import { executeRestore } from "./restore.ts";
import type { EngineParts, RunContext, RunControl } from "./run-context.ts";
import type { RunReport } from "./run-report.ts";

/** What a claimed run does, by its kind. Everything around it (claim, lease, attempts, history) is the same for all. */
const EXECUTE: Record<RunKind, (run: RunContext) => Promise<ExecutionEnd>> = {
  load: executePipeline,
  restore: executeRestore,
  reconcile: executeReconcile,
};

/** Takes one claimed run to its end, its pause or its error. */
export async function executeRun(
  parts: EngineParts,
  claim: Claim,
  control: RunControl,
  report: RunReport,
): Promise<ExecutionEnd> {
  await faultPoint("claimed");
  const commit = parts.store.batchCommit(claim);
  return EXECUTE[claim.kind]({ parts, claim, pipeline: claim.pipeline, commit, control, report });
}
