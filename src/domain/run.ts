import { z } from "zod";

/** One attempt to do something with a pipeline, and how its rows are counted. */

/**
 * - `load`: moves rows from the source to the target.
 * - `restore`: brings back the target as it was before the last full load.
 * - `reconcile`: compares source and target, and changes neither.
 */
export const RUN_KINDS = ["load", "restore", "reconcile"] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** A pipeline has at most one run in each lane at a time. Its status is about the one that writes. */
export const RUN_LANES = ["write", "read"] as const;
export type RunLane = (typeof RUN_LANES)[number];

const LANE_OF: Record<RunKind, RunLane> = { load: "write", restore: "write", reconcile: "read" };

export function laneOf(kind: RunKind): RunLane {
  return LANE_OF[kind];
}

export const RUN_STATUSES = [
  "REQUESTED",
  "RUNNING",
  "SUCCESS",
  "FAILED",
  "PAUSED",
  "HANDED_BACK",
  "CANCELLED",
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const RUN_TRIGGERS = ["api", "schedule", "recovery", "follow_up", "change", "sweep"] as const;
export type RunTrigger = (typeof RUN_TRIGGERS)[number];

const count = z.int().nonnegative();

/** Every row that was read ends in exactly one of the other counts. Deletions are counted separately. */
const countersShape = {
  rows_read: count,
  rows_written: count.describe("Inserted or changed in the target."),
  rows_unchanged: count.describe("Already in the target as they are."),
  rows_deduplicated: count.describe("Left out because a later row has the same key."),
  rows_rejected: count.describe("Set aside because the target refused them."),
  rows_dropped: count.describe("Left out by a transform."),
  rows_added: count.describe("Made by a transform beyond one per row read."),
};
const countersSchema = z.object(countersShape);
export type BatchCounters = z.infer<typeof countersSchema>;

export const runSchema = z.object({
  id: z.guid(),
  pipeline_id: z.guid(),
  pipeline_name: z.string(),
  kind: z
    .enum(RUN_KINDS)
    .describe("load: moves rows; restore: brings the previous target back; reconcile: compares source and target."),
  run_request: z
    .int()
    .describe("Which request it serves; every attempt of one request has the same number. 0 for a reconcile."),
  attempt: z.int(),
  status: z
    .enum(RUN_STATUSES)
    .describe(
      "REQUESTED: a reconcile that waits for a runner. HANDED_BACK: its runner was stopped, and another one goes on. CANCELLED: somebody ended it.",
    ),
  trigger: z
    .enum(RUN_TRIGGERS)
    .describe(
      "recovery: continues for a runner that was lost; follow_up: reads everything again after a full load that was interrupted and resumed; change: the source has changed; sweep: everything is to be compared and repaired.",
    ),
  config_version: z.int().describe("The version it began with."),
  applied_version: z.int().describe("The newest version that it has adopted, between two batches."),
  runner_id: z.guid().nullable().describe("Null before a runner has taken it."),
  started_at: z.date().describe("While it is REQUESTED: since when."),
  finished_at: z.date().nullable(),
  duration_ms: count.describe("So far, while it runs. Waiting before an attempt is not counted."),
  ...countersShape,
  rows_deleted: count,
  batches: count,
  estimated_rows: count.nullable().describe("What the source's planner expects it to read; an estimate."),
  data_path: z.string().nullable().describe("How the rows of a load travel: push-down, stream or rows."),
  strategy: z.string().nullable().describe("How they become visible in the target."),
  rows_per_second: count.describe("Rows read per second, over the whole run so far."),
  bytes: count.describe("Read from the source, where known."),
  read_ms: count,
  transform_ms: count,
  write_ms: count,
  resumed: z.boolean().describe("It continues a load that an earlier run did not finish."),
  notes: z.array(z.string()).describe("What a person should know about it, such as why it read everything again."),
  error_code: z.string().nullable(),
  error: z.string().nullable(),
});
export type Run = z.infer<typeof runSchema>;

export function isBalanced(counters: BatchCounters): boolean {
  const { rows_read, rows_added, rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped } =
    counters;
  return rows_read + rows_added === rows_written + rows_unchanged + rows_deduplicated + rows_rejected + rows_dropped;
}

const MAX_ERROR_LENGTH = 4000;

/** Error texts are kept with the run, so they must not grow without limit. */
export function shortenError(text: string): string {
  return text.length <= MAX_ERROR_LENGTH ? text : `${text.slice(0, MAX_ERROR_LENGTH - 1)}…`;
}
