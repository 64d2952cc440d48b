import { VitrinaError } from "../domain/error-catalogue.ts";
import type { LeaseTiming } from "../domain/lease.ts";
import type { Claim, MetaStore, RunOutcome } from "../meta-store/meta-store.ts";
import { type Log, redact } from "../observability/log.ts";
import { databaseError } from "../postgres/errors.ts";
import { type ExecutionEnd, type ExecutorParts, executePipeline } from "./executor.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";

export interface DispatcherParts extends Omit<ExecutorParts, "store"> {
  readonly store: MetaStore;
  readonly timing: LeaseTiming;
}

const OUTCOME_OF_END: Record<ExecutionEnd, RunOutcome> = {
  finished: { kind: "succeeded" },
  paused: { kind: "paused" },
  handed_back: { kind: "handed_back" },
};

/** Carries one claim from its first batch to its entry in the run history. Never throws: one failed pipeline stops no other. */
export async function dispatch(
  parts: DispatcherParts,
  claim: Claim,
  isStopping: () => boolean,
  log: Log,
): Promise<void> {
  const heartbeat = startHeartbeat(parts.store, claim, parts.timing, log);
  const startedAt = performance.now();
  log.info(
    { trigger: claim.trigger, epoch: claim.epoch, resumed: claim.checkpoint.scanPosition !== null },
    "run started",
  );
  try {
    const outcome = await runToOutcome(parts, claim, heartbeat, isStopping, log);
    const status = await parts.store.finishRun(claim, outcome);
    log.info({ outcome: outcome.kind, status, duration_ms: Math.round(performance.now() - startedAt) }, "run ended");
  } catch (error) {
    // Neither the outcome nor the error could be kept: the lease runs out, and recovery takes the pipeline back.
    log.error({ err: error }, "run left to recovery");
  } finally {
    heartbeat.stop();
  }
}

async function runToOutcome(
  parts: DispatcherParts,
  claim: Claim,
  heartbeat: Heartbeat,
  isStopping: () => boolean,
  log: Log,
): Promise<RunOutcome> {
  const stopRequest = () => {
    if (heartbeat.lost) throw new VitrinaError("LEASE_LOST", `The lease of ${claim.pipeline.name} is lost.`);
    if (heartbeat.status === "PAUSE_REQUESTED") return "pause";
    return isStopping() ? "hand_back" : undefined;
  };
  try {
    return OUTCOME_OF_END[await executePipeline(parts, claim, stopRequest, log)];
  } catch (error) {
    const failure = databaseError(error, `run ${claim.pipeline.name}`);
    if (failure.retry === "fenced" || failure.retry === "reconnect") throw failure;
    log.error({ err: failure, code: failure.code }, "run failed");
    return { kind: "failed", code: failure.code, error: redact(`${failure.message} ${failure.hint}`) };
  }
}
