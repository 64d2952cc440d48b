import { setTimeout as delay } from "node:timers/promises";
import { type RetryClass, VitrinaError } from "../domain/error-catalogue.ts";
import type { LeaseTiming } from "../domain/lease.ts";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import { decideRetry, type RetryPolicy } from "../domain/retry-policy.ts";
import type { Claim, MetaStore, RunFailure, RunOutcome } from "../meta-store/meta-store.ts";
import { type Log, redact } from "../observability/log.ts";
import type { RunResult } from "../observability/runner-metrics.ts";
import { databaseError } from "../postgres/errors.ts";
import { type ExecutionEnd, type ExecutorParts, executePipeline, type RunControl } from "./executor.ts";
import type { Heartbeat, Heartbeats } from "./heartbeat.ts";

export interface DispatcherParts extends Omit<ExecutorParts, "store"> {
  readonly store: MetaStore;
  readonly timing: LeaseTiming;
  readonly retry: RetryPolicy;
  readonly heartbeats: Pick<Heartbeats, "hold">;
  /** Aborts when the runner stops: the batch under way ends, and the pipeline goes back. */
  readonly stopSignal: AbortSignal;
  readonly log: Log;
}

const OUTCOME_OF_END: Record<ExecutionEnd, RunOutcome> = {
  finished: { kind: "succeeded" },
  paused: { kind: "paused" },
  handed_back: { kind: "handed_back" },
};

/** A run may find everything read and still be paused, so only the status afterwards tells how it ended. */
function resultOf(status: PipelineStatus): RunResult {
  if (status === "IDLE") return "success";
  if (status === "FAILED") return "failed";
  return status === "RUN_REQUESTED" ? "handed_back" : "paused";
}

/**
 * Carries one claim from its first batch to its entry in the run history, over as many attempts as it takes. Never
 * throws: one failed pipeline stops no other.
 */
export async function dispatch(parts: DispatcherParts, claim: Claim, heldSince: number): Promise<void> {
  const log = withRun(parts.log, claim);
  const { observer } = parts;
  const heartbeat = parts.heartbeats.hold(claim, heldSince, log);
  observer.pipelineTaken();
  try {
    await runAttempts(parts, claim, heartbeat);
  } catch (error) {
    if (databaseError(error, "run").retry === "fenced") {
      observer.leaseLost();
      log.debug({ err: error }, "run dropped");
    } else {
      // Neither the outcome nor the error could be kept: the lease runs out, and recovery takes the pipeline back.
      observer.runAbandoned();
      log.error({ err: error }, "run left to recovery");
    }
  } finally {
    heartbeat.stop();
    observer.pipelineReleased();
  }
}

async function runAttempts(parts: DispatcherParts, first: Claim, heartbeat: Heartbeat): Promise<void> {
  const { store, retry, stopSignal, observer } = parts;
  const control = controlOf(first, heartbeat, stopSignal);
  for (let claim = first; ; ) {
    const log = withRun(parts.log, claim);
    const startedAt = performance.now();
    const result = await attempt(parts, claim, control, log);
    const finish = async (outcome: RunOutcome): Promise<void> => {
      const status = await store.finishRun(claim, outcome);
      const durationMs = performance.now() - startedAt;
      observer.runEnded(resultOf(status), durationMs, outcome.kind === "failed" ? outcome.code : undefined);
      log.info({ outcome: outcome.kind, status, duration_ms: Math.round(durationMs) }, "run ended");
    };
    if (!(result instanceof VitrinaError)) return finish(result);

    const decision = decideRetry(await retryClassOf(result, parts, claim), claim.attempt, retry);
    const failure = { code: result.code, error: redact(`${result.message} ${result.hint}`) };
    switch (decision.action) {
      case "fail":
        log.error({ err: result, code: result.code }, "run failed");
        return finish({ kind: "failed", ...failure });
      case "leave":
        throw result;
      case "drop":
        throw leaseLost(claim, result);
      case "retry":
        claim = await nextAttempt(store, claim, failure, decision.delayMs, log);
        observer.runEnded("failed", performance.now() - startedAt, failure.code);
        await waitUnless(AbortSignal.any([stopSignal, heartbeat.interruptSignal]), decision.delayMs);
    }
  }
}

/** Asked before an attempt and between its batches. */
function controlOf(claim: Claim, heartbeat: Heartbeat, stopSignal: AbortSignal): RunControl {
  return {
    lostSignal: heartbeat.lostSignal,
    stopRequest() {
      if (heartbeat.lost) throw leaseLost(claim);
      if (heartbeat.status === "PAUSE_REQUESTED") return "pause";
      return stopSignal.aborted ? "hand_back" : undefined;
    },
  };
}

/** How one attempt ended: with an outcome, or with the error that ended it. */
async function attempt(
  parts: DispatcherParts,
  claim: Claim,
  control: RunControl,
  log: Log,
): Promise<RunOutcome | VitrinaError> {
  try {
    const request = control.stopRequest();
    if (request !== undefined) return { kind: request === "pause" ? "paused" : "handed_back" };
    log.info({ trigger: claim.trigger, attempt: claim.attempt, epoch: claim.epoch }, "run started");
    return OUTCOME_OF_END[await executePipeline(parts, claim, control, log)];
  } catch (error) {
    return databaseError(error, `run ${claim.pipeline.name}`);
  }
}

/**
 * A database that is away is left to recovery only when it is the meta-store's: as long as that one answers, the
 * source or the target alone is away, and the run waits for it like for any other trouble.
 */
async function retryClassOf(failure: VitrinaError, parts: DispatcherParts, claim: Claim): Promise<RetryClass> {
  if (failure.retry !== "reconnect") return failure.retry;
  try {
    const status = await parts.store.extendLease(claim, parts.timing.durationMs);
    return status === undefined ? "fenced" : "retry";
  } catch {
    return "reconnect";
  }
}

async function nextAttempt(
  store: MetaStore,
  claim: Claim,
  failure: RunFailure,
  delayMs: number,
  log: Log,
): Promise<Claim> {
  const next = await store.startNextAttempt(claim, failure);
  log.warn(
    { ...failure, attempt: claim.attempt, next_run_id: next.runId, wait_ms: delayMs },
    "attempt failed; trying again",
  );
  return next;
}

async function waitUnless(signal: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

function leaseLost({ pipeline }: Claim, cause?: VitrinaError): VitrinaError {
  return new VitrinaError("LEASE_LOST", `The lease of ${pipeline.name} is lost.`, { cause });
}

/** Every line of a run carries the ids that a person searches for. */
function withRun(log: Log, { pipeline, runId }: Claim): Log {
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, run_id: runId };
  return {
    debug: (fields, message) => log.debug({ ...ids, ...fields }, message),
    info: (fields, message) => log.info({ ...ids, ...fields }, message),
    warn: (fields, message) => log.warn({ ...ids, ...fields }, message),
    error: (fields, message) => log.error({ ...ids, ...fields }, message),
  };
}
