import type { Tracer } from "@opentelemetry/api";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import type { BatchCounters, Run, RunKind } from "../domain/run.ts";
import type { BatchEffort } from "../meta-store/ports/batch-commit.ts";
import type { Claim, RunFailure, RunOutcome } from "../meta-store/ports/run-queue.ts";
import type { Log } from "../observability/log.ts";
import type { RunLogs } from "../observability/run-logs.ts";
import type { RunObserver, RunResult } from "../observability/runner-metrics.ts";
import { databaseError } from "../postgres/errors.ts";
import { RunLog } from "./run-log.ts";
import { RunTrace } from "./run-trace.ts";

export interface ReportParts {
  readonly log: Log;
  readonly runLogs: RunLogs;
  readonly tracer: Tracer;
  readonly observer: RunObserver;
}

interface ReportedBatch {
  readonly batchNo: number;
  readonly counters: BatchCounters;
  readonly rowsDeleted: number;
  readonly effort: BatchEffort;
}

interface RunTotals {
  readonly batches: number;
  readonly rows_read: number;
  readonly rows_written: number;
  readonly duration_ms: number;
}

/** What a run reports about itself, attempt by attempt: log lines, spans and metrics. */
export class RunReport {
  readonly log: RunLog;
  readonly observer: RunObserver;
  readonly #kind: RunKind;
  readonly #tracer: Tracer;
  #trace: RunTrace;
  #startedAt = performance.now();
  #totals = { batches: 0, rows_read: 0, rows_written: 0 };

  constructor({ log, runLogs, tracer, observer }: ReportParts, claim: Claim) {
    this.observer = observer;
    this.#kind = claim.kind;
    this.#tracer = tracer;
    this.#trace = new RunTrace(tracer, claim);
    this.log = new RunLog(log, runLogs, idsOf(claim, this.#trace));
  }

  /** What follows belongs to another attempt, which is a run of its own. */
  failedAttempt(failure: RunFailure, waitMs: number, failed: Claim, next: Claim): void {
    this.log.warn(
      { ...failure, attempt: failed.attempt, next_run_id: next.runId, wait_ms: waitMs, ...this.#totalsNow() },
      "attempt failed; trying again",
    );
    this.#endTrace("failed", failure.code);
    this.#countEnd("failed", failure.code);
    this.#moveTo(next);
  }

  /** Time spent waiting before the attempt is not its own. */
  attemptBegins(): void {
    this.#startedAt = performance.now();
  }

  /** `status` is the pipeline's afterwards, if the run affects it. */
  ended(outcome: RunOutcome, status: PipelineStatus | undefined): void {
    const code = "code" in outcome ? outcome.code : undefined;
    if (outcome.kind === "waiting" && status === "RUN_REQUESTED") {
      const { error, waitMs: wait_ms } = outcome;
      this.log.warn({ code, error, wait_ms }, "attempt failed; waiting until the problem passes");
    }
    this.log.info({ outcome: outcome.kind, status, ...this.#totalsNow() }, "run ended");
    this.#endTrace(outcome.kind, code);
    this.#countEnd(code === undefined ? resultOf(outcome, status) : "failed", code);
  }

  /** How many this attempt has committed. */
  get batches(): number {
    return this.#totals.batches;
  }

  /** The lease is lost: another runner takes over, and nothing of this run counts. */
  dropped(error: unknown): void {
    this.log.debug({ err: error }, "run dropped");
    this.#endTrace("dropped", databaseError(error, "run").code);
    this.observer.leaseLost();
  }

  /** Neither the outcome nor the error could be recorded: the lease runs out, and recovery takes the pipeline back. */
  leftToRecovery(error: unknown): void {
    this.log.error({ err: error }, "run left to recovery");
    this.#endTrace("left_to_recovery", databaseError(error, "run").code);
    this.observer.runAbandoned();
  }

  #moveTo(claim: Claim): void {
    this.#trace = new RunTrace(this.#tracer, claim);
    this.log.moveTo(idsOf(claim, this.#trace));
    this.#startedAt = performance.now();
    this.#totals = { batches: 0, rows_read: 0, rows_written: 0 };
  }

  /** Returns what `move` returns, and reports the batch it committed; `undefined` means there was none. */
  async batch<T extends ReportedBatch | undefined>(move: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      const moved = await move();
      if (moved !== undefined) this.#committed(moved, startedAt);
      return moved;
    } catch (error) {
      this.#trace.batch(startedAt, {}, databaseError(error, "move a batch").code);
      throw error;
    }
  }

  #totalsNow(): RunTotals {
    return { ...this.#totals, duration_ms: msSince(this.#startedAt) };
  }

  #countEnd(result: RunResult, code: string | undefined): void {
    this.observer.runEnded(this.#kind, result, performance.now() - this.#startedAt, code);
  }

  #endTrace(result: string, error?: string): void {
    const { duration_ms: _, ...counts } = this.#totalsNow();
    this.#trace.end({ result, ...counts }, error);
  }

  #committed({ batchNo, counters, rowsDeleted, effort }: ReportedBatch, startedAt: number): void {
    this.observer.batchCommitted(counters, effort);
    this.observer.rowsDeleted(rowsDeleted);
    this.#totals.batches += 1;
    this.#totals.rows_read += counters.rows_read;
    this.#totals.rows_written += counters.rows_written;
    const timings = {
      read_ms: Math.round(effort.read_ms),
      transform_ms: Math.round(effort.transform_ms),
      write_ms: Math.round(effort.write_ms),
    };
    const counts = withoutZeros({ ...counters, rows_deleted: rowsDeleted });
    this.#trace.batch(startedAt, { number: batchNo, ...counts, ...timings });
    this.log.info(
      { batch: batchNo, ...counts, bytes: effort.bytes, ...timings, duration_ms: msSince(startedAt) },
      "batch committed",
    );
  }
}

/** A run may find everything read and still be paused, so only the status afterwards tells how it ended. */
function resultOf({ kind }: RunOutcome, status: PipelineStatus | undefined): RunResult {
  if (kind === "cancelled") return "cancelled";
  if (status === "PAUSED") return "paused";
  if (kind === "succeeded") return "success";
  return status === "RUN_REQUESTED" || status === undefined ? "handed_back" : "cancelled";
}

function idsOf({ pipeline, runId }: Claim, { traceId }: RunTrace) {
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, run_id: runId };
  return traceId === undefined ? ids : { ...ids, trace_id: traceId };
}

function msSince(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}

/** Most counts of most batches are 0, and only make the line longer. */
function withoutZeros({
  rows_read,
  rows_written,
  ...rare
}: BatchCounters & Pick<Run, "rows_deleted">): Record<string, number> {
  const given = Object.entries(rare).filter(([, count]) => count > 0);
  return { rows_read, rows_written, ...Object.fromEntries(given) };
}
