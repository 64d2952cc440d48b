import { type PipelineStatus, transitionsOf } from "../../domain/pipeline-status.ts";

/** As literals and not as parameters, so that the planner sees that they fit a partial index. */
function statusList(statuses: readonly PipelineStatus[]): string {
  return statuses.map((status) => `'${status}'`).join(", ");
}

/** What a runner may claim. */
export const CLAIMABLE = statusList(transitionsOf("claim").from);
