import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { COMPARE_CAUSES, type CompareCause } from "../domain/follow.ts";
import { type BatchCounters, RUN_KINDS, RUN_LANES, type RunKind, type RunLane } from "../domain/run.ts";

/** How a run in the run history ended. `handed_back`: its runner stopped, and another run continues. */
const RUN_RESULTS = ["success", "failed", "paused", "handed_back", "cancelled"] as const;
export type RunResult = (typeof RUN_RESULTS)[number];

/** `open`: everything before the first row. `end`: making the load visible, or moving the watermark. */
const RUN_STAGES = ["open", "batches", "end"] as const;
type RunStage = (typeof RUN_STAGES)[number];

interface BatchTimes {
  readonly bytes: number;
  readonly read_ms: number;
  readonly transform_ms: number;
  readonly write_ms: number;
}

/** The data-plane reports events here, to be counted. Called at most once per batch, never per row. */
export interface RunObserver {
  /** The meta-store answered when asked for work. */
  turned(): void;
  runTaken(lane: RunLane): void;
  runReleased(lane: RunLane): void;
  timeStage<T>(stage: RunStage, work: () => Promise<T>): Promise<T>;
  /** Called after the commit, so that the metric agrees with the run's own record. */
  batchCommitted(counters: BatchCounters, times: BatchTimes): void;
  rowsDeleted(count: number): void;
  /** A sweep found so many rows that differed although every change had been followed. */
  rowsRepaired(count: number): void;
  everythingCompared(cause: CompareCause): void;
  runEnded(kind: RunKind, result: RunResult, durationMs: number, code?: string): void;
  /** This runner ended the run of a lost runner. */
  runRescued(kind: RunKind): void;
  leaseLost(): void;
  /** The meta-store did not answer, so the end of the run could not be recorded. */
  runAbandoned(): void;
}

/** From a tenth of a second to four hours. */
const RUN_BUCKETS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14_400];
/** A batch of a simple mart takes less than 0.3 seconds. */
const BATCH_BUCKETS = [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10, 60];

const ROW_HELP: Record<keyof BatchCounters, string> = {
  rows_read: "Rows read from sources.",
  rows_written: "Rows inserted or changed in targets.",
  rows_unchanged: "Rows that were already in the target, unchanged.",
  rows_deduplicated: "Rows left out because a later row has the same key.",
  rows_rejected: "Rows set aside because the target refused them.",
  rows_dropped: "Rows left out by a code task.",
  rows_added: "Rows made by a code task beyond one per row read.",
};
const ROW_COUNTERS = Object.keys(ROW_HELP) as (keyof BatchCounters)[];

/** Counts in memory, since the start of this process. No label here grows with the number of pipelines. */
export function createRunnerMetrics(registry: Registry, slots: Readonly<Record<RunLane, number>>): RunObserver {
  const metrics = createMetrics(registry);
  for (const lane of RUN_LANES) {
    metrics.slots.set({ lane }, slots[lane]);
    metrics.used.set({ lane }, 0);
  }
  // A series that begins with its first event has no increase() to alert on.
  for (const kind of RUN_KINDS) {
    for (const result of RUN_RESULTS) metrics.runs.inc({ kind, result }, 0);
  }
  metrics.failures.inc({ kind: "load", code: "RUNNER_LOST" }, 0);
  for (const cause of COMPARE_CAUSES) metrics.compares.inc({ cause }, 0);

  const observeBatch = (stage: string, ms: number): void => {
    if (ms > 0) metrics.batches.observe({ stage }, ms / 1000);
  };
  return {
    turned: () => metrics.lastTurn.setToCurrentTime(),
    runTaken: (lane) => metrics.used.inc({ lane }),
    runReleased: (lane) => metrics.used.dec({ lane }),
    async timeStage(stage, work) {
      const stop = metrics.stages.startTimer({ stage });
      try {
        return await work();
      } finally {
        stop();
      }
    },
    batchCommitted(counters, times) {
      for (const [name, counter] of metrics.rows) counter.inc(counters[name]);
      metrics.bytes.inc(times.bytes);
      observeBatch("read", times.read_ms);
      observeBatch("transform", times.transform_ms);
      observeBatch("write", times.write_ms);
    },
    rowsDeleted: (count) => metrics.deleted.inc(count),
    rowsRepaired: (count) => metrics.repaired.inc(count),
    everythingCompared: (cause) => metrics.compares.inc({ cause }),
    runEnded(kind, result, durationMs, code) {
      metrics.runs.inc({ kind, result });
      metrics.durations.observe({ kind, result }, durationMs / 1000);
      if (code !== undefined) metrics.failures.inc({ kind, code });
    },
    runRescued(kind) {
      metrics.runs.inc({ kind, result: "failed" });
      metrics.failures.inc({ kind, code: "RUNNER_LOST" });
    },
    leaseLost: () => metrics.leaseLosses.inc(),
    runAbandoned: () => metrics.abandoned.inc(),
  };
}

function createMetrics(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });
  return {
    rows: new Map(ROW_COUNTERS.map((name) => [name, counter(`vitrina_${name}_total`, ROW_HELP[name])])),
    deleted: counter("vitrina_rows_deleted_total", "Rows deleted from targets because the source no longer has them."),
    compares: counter(
      "vitrina_follow_compares_total",
      "Whole marts that were compared in follow mode, by cause: first_run, position, target, source, keys or sweep.",
      "cause",
    ),
    repaired: counter(
      "vitrina_follow_repaired_total",
      "Rows that sweeps found to differ although every change had been followed, and repaired.",
    ),
    bytes: counter("vitrina_read_bytes_total", "Bytes read from sources, where they are known (data path stream)."),
    batches: histogram(
      "vitrina_batch_duration_seconds",
      "How long committed batches took, by stage; in push-down the server does everything in write.",
      ["stage"],
      BATCH_BUCKETS,
    ),
    stages: histogram(
      "vitrina_run_stage_duration_seconds",
      "How long the parts of a run took: opening it, its batches, and making the result visible.",
      ["stage"],
      RUN_BUCKETS,
    ),
    runs: counter("vitrina_runs_total", "Runs that ended, each attempt counted, by kind and result.", "kind", "result"),
    failures: counter(
      "vitrina_run_failures_total",
      "Failed runs by kind and the code of their error; RUNNER_LOST: this runner took them over from a lost one.",
      "kind",
      "code",
    ),
    durations: histogram(
      "vitrina_run_duration_seconds",
      "How long runs took from claim to end, by kind and result.",
      ["kind", "result"],
      RUN_BUCKETS,
    ),
    leaseLosses: counter("vitrina_lease_losses_total", "Runs this runner dropped because it had lost its lease."),
    abandoned: counter("vitrina_runs_abandoned_total", "Runs left to recovery because the meta-store did not answer."),
    used: gauge("vitrina_runner_slots_used", "Runs that this runner holds, by lane.", "lane"),
    slots: gauge(
      "vitrina_runner_slots",
      "The most runs that this runner executes at once: those that write (RUNNER_CONCURRENCY), and those that only read.",
      "lane",
    ),
    lastTurn: gauge(
      "vitrina_runner_last_turn_timestamp_seconds",
      "When this runner last looked for work and the meta-store answered.",
    ),
  };
}
