import { setTimeout as delay } from "node:timers/promises";
import { type RetryClass, VitrinaError } from "../domain/error-catalogue.ts";
import type { LeaseTiming } from "../domain/lease.ts";
import { endAskedFor } from "../domain/pipeline-status.ts";
import { decideRetry, mayPass, type RetryPolicy } from "../domain/retry-policy.ts";
import { laneOf } from "../domain/run.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Claim, RunFailure, RunOutcome, RunQueue } from "../meta-store/ports/run-queue.ts";
import { redact } from "../observability/log.ts";
import { databaseError } from "../postgres/errors.ts";
import { TaskRetryLater } from "../tasks/retry-later.ts";
import type { ExecutionEnd } from "./executor.ts";
import type { Heartbeat, Heartbeats } from "./heartbeat.ts";
import type { EngineParts, RunControl } from "./run-context.ts";
import { executeRun } from "./run-kinds.ts";
import { type ReportParts, RunReport } from "./run-report.ts";

export interface DispatcherParts extends Omit<EngineParts, "store">, ReportParts {
  readonly store: EngineParts["store"] & Pick<MetaStore, "queue">;
  readonly timing: LeaseTiming;
  readonly retry: RetryPolicy;
  readonly heartbeats: Pick<Heartbeats, "hold">;
  /** Aborts when the runner stops: the batch under way ends, and the pipeline goes back. */
  readonly stopSignal: AbortSignal;
}

const OUTCOME_OF_END: Record<ExecutionEnd, RunOutcome> = {
  finished: { kind: "succeeded" },
  finished_in_parts: { kind: "succeeded", inParts: true },
  paused: { kind: "paused" },
  cancelled: { kind: "cancelled" },
  handed_back: { kind: "handed_back" },
};

/**
 * Carries one claim from its first batch to its entry in the run history, over as many attempts as it takes. Never
 * throws: one failed pipeline stops no other.
 */
export async function dispatch(parts: DispatcherParts, claim: Claim, heldSince: number): Promise<void> {
  const report = new RunReport(parts, claim);
  const heartbeat = parts.heartbeats.hold(claim, heldSince, report.log);
  parts.observer.runTaken(laneOf(claim.kind));
  try {
    await runAttempts(parts, claim, heartbeat, report);
  } catch (error) {
    if (databaseError(error, "run").retry === "fenced") report.dropped(error);
    else report.leftToRecovery(error);
  } finally {
    heartbeat.stop();
    parts.observer.runReleased(laneOf(claim.kind));
    report.log.end();
  }
}

async function runAttempts(
  parts: DispatcherParts,
  first: Claim,
  heartbeat: Heartbeat,
  report: RunReport,
): Promise<void> {
  const { store, stopSignal } = parts;
  const retry = retryPolicyOf(parts, first);
  const control = controlOf(first, heartbeat, stopSignal);
  const claimedAt = performance.now();
  for (let claim = first, tries = 1; ; tries += 1) {
    const result = await attempt(parts, claim, control, report);
    const finish = async (outcome: RunOutcome): Promise<void> => {
      report.ended(outcome, await store.queue.finishRun(claim, outcome));
    };
    if (!(result instanceof VitrinaError)) return finish(result);
    if (endAskedFor(heartbeat.status) === "cancelled") {
      report.log.info(
        { code: result.code, reason: redact(result.message) },
        "cancelled: the batch under way is given up",
      );
      return finish({ kind: "cancelled" });
    }

    // A committed batch shows that any earlier failure has passed.
    const isNew = report.batches > 0;
    const troubledMs = first.troubledMs === null || isNew ? 0 : first.troubledMs + performance.now() - claimedAt;
    const askedMs = result instanceof TaskRetryLater ? result.delayMs : undefined;
    const failed = { attempt: tries, troubledMs, retryForMs: retry.forMs, askedMs };
    const decision = decideRetry(await retryClassOf(result, parts, claim), failed, retry.policy, Math.random());
    const failure = { code: result.code, error: redact(`${result.message} ${result.hint}`) };
    switch (decision.action) {
      case "fail":
        report.log.error({ ...failure, ...(result.code === "INTERNAL" && { err: result }) }, "run failed");
        return finish({ kind: "failed", mayPass: mayPass(result.retry), ...failure });
      case "wait":
        return finish({ kind: "waiting", ...failure, waitMs: decision.delayMs, isNew });
      case "leave":
        throw result;
      case "drop":
        throw leaseLost(claim, result);
      case "retry":
        claim = await nextAttempt(store.queue, claim, failure, decision.delayMs, report);
        await waitUnless(AbortSignal.any([stopSignal, heartbeat.interruptSignal]), decision.delayMs);
        await store.queue.attemptBegins(claim);
        report.attemptBegins();
    }
  }
}

/** Someone is waiting for the answer of a run that only reads, and can ask again: a failure is reported at once. */
function retryPolicyOf(
  { retry }: DispatcherParts,
  { kind, pipeline }: Claim,
): { readonly policy: RetryPolicy; readonly forMs: number } {
  return laneOf(kind) === "read"
    ? { policy: { ...retry, maxAttempts: 1 }, forMs: 0 }
    : { policy: retry, forMs: pipeline.retry_for_seconds * 1000 };
}

/** Asked before an attempt and between its batches. */
function controlOf(claim: Claim, heartbeat: Heartbeat, stopSignal: AbortSignal): RunControl {
  return {
    stopSignal,
    endSignal: heartbeat.endSignal,
    cancelSignal: heartbeat.cancelSignal,
    stopRequest() {
      if (heartbeat.lost) throw leaseLost(claim);
      return endAskedFor(heartbeat.status) ?? (stopSignal.aborted ? "handed_back" : undefined);
    },
  };
}

/** How one attempt ended: with an outcome, or with the error that ended it. */
async function attempt(
  parts: DispatcherParts,
  claim: Claim,
  control: RunControl,
  report: RunReport,
): Promise<RunOutcome | VitrinaError> {
  try {
    const request = control.stopRequest();
    if (request !== undefined) return { kind: request };
    const { kind, trigger, attempt, epoch, runnerId: runner_id, pipeline } = claim;
    report.log.info(
      { kind, status: "RUNNING", trigger, attempt, epoch, runner_id, config_version: pipeline.config_version },
      "run started",
    );
    return OUTCOME_OF_END[await executeRun(parts, claim, control, report)];
  } catch (error) {
    return databaseError(error, `run ${claim.pipeline.name}`);
  }
}

/**
 * An unreachable database is left to recovery only if it is the meta-store's. While the meta-store answers, only the
 * source or the target is down, and the run waits for it as for any other failure that may pass.
 */
async function retryClassOf(failure: VitrinaError, parts: DispatcherParts, claim: Claim): Promise<RetryClass> {
  if (failure.retry !== "reconnect") return failure.retry;
  try {
    const status = await parts.store.queue.extendLease(claim, parts.timing.durationMs);
    return status === undefined ? "fenced" : "wait";
  } catch {
    return "reconnect";
  }
}

async function nextAttempt(
  queue: RunQueue,
  claim: Claim,
  failure: RunFailure,
  delayMs: number,
  report: RunReport,
): Promise<Claim> {
  const next = await queue.startNextAttempt(claim, failure);
  report.failedAttempt(failure, delayMs, claim, next);
  return next;
}

async function waitUnless(signal: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

function leaseLost({ pipeline }: Claim, cause?: VitrinaError): VitrinaError {
  return new VitrinaError("LEASE_LOST", `The lease of ${pipeline.name} was lost.`, { cause });
}
