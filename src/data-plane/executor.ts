import { VitrinaError } from "../domain/error-catalogue.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { executeLoad } from "./execute-load.ts";
import { executeFollow } from "./follow/execute-follow.ts";
import { isInParts, openLoad, openReading } from "./load.ts";
import type { EarlyEnd, LoadScope, RunContext } from "./run-context.ts";
import { requireNotAhead } from "./target-loss.ts";

/** `finished_in_parts`: complete, but read at several moments. */
export type ExecutionEnd = "finished" | "finished_in_parts" | EarlyEnd;

/** Loads one claimed pipeline: plan → read → transform → write → commit. */
export async function executePipeline(run: RunContext): Promise<ExecutionEnd> {
  const { parts, pipeline, commit } = run;
  requireNotAhead(pipeline, await parts.store.state.get(pipeline.id));
  try {
    const end = await execute(run);
    if (end === "finished" || end === "finished_in_parts") await faultPoint("before_finish");
    return end;
  } catch (error) {
    if (error instanceof VitrinaError && error.code === "TARGET_AHEAD") await commit.noteTargetAhead();
    throw error;
  }
}

/** What is done: everything is loaded, what lies after the cursor, or what changes concern. A sweep compares everything. */
async function execute(run: RunContext): Promise<ExecutionEnd> {
  const { parts, pipeline, commit } = run;
  if (pipeline.mode === "follow") return executeFollow(run);
  const { sweepWanted } = await parts.store.follow.get(pipeline.id);
  const end = await loadOnce(run, pipeline.mode === "incremental" && !sweepWanted ? "after_cursor" : "everything");
  // What was read in parts is read again by the run that follows, which sweeps then.
  if (sweepWanted && end === "finished") await commit.noteSwept(0, null);
  return end;
}

async function loadOnce(run: RunContext, scope: LoadScope): Promise<ExecutionEnd> {
  const { observer } = run.report;
  const opened: { close(): Promise<void> }[] = [];
  try {
    const load = await observer.timeStage("open", async () => {
      const reading = await openReading(run);
      opened.push(reading);
      return openLoad(reading, scope);
    });
    opened.unshift(load);
    const stop = await executeLoad(load);
    if (stop !== undefined) return stop;
    return isInParts(load) ? "finished_in_parts" : "finished";
  } finally {
    for (const part of opened) await part.close();
  }
}
