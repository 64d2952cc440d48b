import type { Tracer } from "@opentelemetry/api";
import type { ErrorCode } from "../domain/error-catalogue.ts";
import type { BatchCounters } from "../domain/run.ts";
import type { BatchEffort, Claim } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import type { RunLogs } from "../observability/run-logs.ts";
import { databaseError } from "../postgres/errors.ts";
import { RunLog } from "./run-log.ts";
import { RunTrace } from "./run-trace.ts";

export interface ReportParts {
  readonly log: Log;
  readonly runLogs: RunLogs;
  readonly tracer: Tracer;
}

interface CommittedBatch {
  readonly batchNo: number;
  readonly counters: BatchCounters;
  readonly effort: BatchEffort;
}

interface RunTotals {
  readonly batches: number;
  readonly rows_read: number;
  readonly rows_written: number;
  readonly duration_ms: number;
}

/** What a run tells about itself while it goes on, in the log and as spans; then the same of its next attempt. */
export class RunReport {
  readonly log: RunLog;
  readonly #tracer: Tracer;
  #trace: RunTrace;
  #startedAt = performance.now();
  #totals = { batches: 0, rows_read: 0, rows_written: 0 };

  constructor({ log, runLogs, tracer }: ReportParts, claim: Claim) {
    this.#tracer = tracer;
    this.#trace = new RunTrace(tracer, claim);
    this.log = new RunLog(log, runLogs, idsOf(claim, this.#trace));
  }

  /** What follows belongs to another attempt, which is a run of its own. */
  moveTo(claim: Claim): void {
    this.#trace = new RunTrace(this.#tracer, claim);
    this.log.moveTo(idsOf(claim, this.#trace));
    this.#startedAt = performance.now();
    this.#totals = { batches: 0, rows_read: 0, rows_written: 0 };
  }

  /** Passes on what `move` gives, and tells of the batch that it committed; `undefined` means there was none. */
  async batch<T extends CommittedBatch | undefined>(move: () => Promise<T>): Promise<T> {
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

  totals(): RunTotals {
    return { ...this.#totals, duration_ms: msSince(this.#startedAt) };
  }

  /** For the span of the run; what its log says last depends on how it ended. */
  endTrace(result: string, error?: ErrorCode): void {
    const { duration_ms: _, ...counts } = this.totals();
    this.#trace.end({ result, ...counts }, error);
  }

  #committed({ batchNo, counters, effort }: CommittedBatch, startedAt: number): void {
    this.#totals.batches += 1;
    this.#totals.rows_read += counters.rows_read;
    this.#totals.rows_written += counters.rows_written;
    const timings = {
      read_ms: Math.round(effort.read_ms),
      transform_ms: Math.round(effort.transform_ms),
      write_ms: Math.round(effort.write_ms),
    };
    const counts = withoutZeros(counters);
    this.#trace.batch(startedAt, { number: batchNo, ...counts, ...timings });
    this.log.info(
      { batch: batchNo, ...counts, bytes: effort.bytes, ...timings, duration_ms: msSince(startedAt) },
      "batch committed",
    );
  }
}

function idsOf({ pipeline, runId }: Claim, { traceId }: RunTrace) {
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, run_id: runId };
  return traceId === undefined ? ids : { ...ids, trace_id: traceId };
}

function msSince(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}

/** Most counts of most batches are 0, and only make the line longer. */
function withoutZeros({ rows_read, rows_written, ...rare }: BatchCounters): Record<string, number> {
  const given = Object.entries(rare).filter(([, count]) => count > 0);
  return { rows_read, rows_written, ...Object.fromEntries(given) };
}
