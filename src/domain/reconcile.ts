import { z } from "zod";
import type { PipelineConfig } from "./pipeline.ts";
import type { RunStatus } from "./run.ts";

/** A comparison of source and target: what it found, and what that means. It is a run of its own kind. */

export const VERDICTS = ["MATCH", "DIFFERENT", "INCONCLUSIVE"] as const;
export type Verdict = (typeof VERDICTS)[number];
const RECONCILE_STATUSES = ["WAITING", "RUNNING", "MATCH", "DIFFERENT", "INCONCLUSIVE", "FAILED"] as const;
type ReconcileStatus = (typeof RECONCILE_STATUSES)[number];

/** This many keys of each kind are listed; all are counted. */
export const LISTED_KEYS = 100;

const count = z.int().nonnegative();
const keySchema = z.record(z.string(), z.string().nullable()).describe("The key columns and their exact texts.");
const range = {
  key_min: keySchema.nullable().describe("The first key; text sorts by bytes. Null when there are no rows."),
  key_max: keySchema.nullable(),
  incremental_key_min: z.string().nullable(),
  incremental_key_max: z.string().nullable(),
};

const sourceSideSchema = z.object({
  rows_read: count.describe("Rows of the query."),
  rows: count.describe("Rows after the code tasks."),
  rows_duplicate: count.describe("Rows whose key comes again later; the last one counts."),
  rows_refused: count.describe("Rows with a value that does not fit the target's types."),
  ...range,
});
const targetSideSchema = z.object({ rows: count, ...range });
export type TargetSide = z.infer<typeof targetSideSchema>;
export type SourceSide = Omit<z.infer<typeof sourceSideSchema>, "rows_read">;

const keys = z.object({ count, keys: z.array(keySchema).describe(`The first ${LISTED_KEYS}.`) });
const differentKeys = z.object({
  count,
  keys: z
    .array(z.object({ key: keySchema, columns: z.array(z.string()).describe("The columns that differ.") }))
    .describe(`The first ${LISTED_KEYS}.`),
});

/** What a sink finds when it compares rows with what it holds. */
export interface Differences {
  readonly missing: z.infer<typeof keys>;
  readonly extra: z.infer<typeof keys>;
  readonly different: z.infer<typeof differentKeys>;
  readonly pending: z.infer<typeof keys>;
}

const reportSchema = z.object({
  source: sourceSideSchema,
  target: targetSideSchema,
  missing: keys.describe("In the source, not in the target."),
  extra: keys.describe("In the target, not in the source."),
  different: differentKeys.describe("In both, with different values."),
  pending: keys.describe("Incremental mode: missing or different, but the next run will read them."),
  compared_columns: z.array(z.string()),
  passes: count.describe("How often both sides were read; they are read again when a run interferes."),
  notes: z.array(z.string()).describe("What explains the differences, in sentences."),
});
export type ReconcileReport = z.infer<typeof reportSchema>;

export const reconcileSchema = z.object({
  id: z.guid().describe("Also the id of its run."),
  pipeline_id: z.guid(),
  status: z
    .enum(RECONCILE_STATUSES)
    .describe("INCONCLUSIVE: a run at the same time may explain the differences, or there was not enough time."),
  requested_by: z.string(),
  requested_at: z.date(),
  started_at: z.date().nullable(),
  finished_at: z.date().nullable(),
  config_version: z.int().nullable().describe("The configuration that was compared; null before it began."),
  runner_id: z.guid().nullable(),
  rows_compared: count.describe("Rows of the source compared so far."),
  report: reportSchema.nullable(),
  error_code: z.string().nullable(),
  error: z.string().nullable(),
});
export type Reconcile = z.infer<typeof reconcileSchema>;

export function reconcileStatus(status: RunStatus, verdict: Verdict | null): ReconcileStatus {
  if (status === "REQUESTED") return "WAITING";
  return status === "RUNNING" ? "RUNNING" : (verdict ?? "FAILED");
}

/** Trouble that may pass, or a lack of time, says nothing about source and target; any other must be put right first. */
export function verdictOfFailure(failure: { readonly code: string; readonly mayPass: boolean }): Verdict | null {
  return failure.mayPass || failure.code === "STATEMENT_TIMEOUT" ? "INCONCLUSIVE" : null;
}

/**
 * What has not been followed yet, of the changes of the source: `nothing`; `soon`: what a run follows that starts by itself;
 * or what no run follows until a person acts, for this reason.
 */
export type Unfollowed = "nothing" | "soon" | { readonly because: "FAILED" | "PAUSED" | "disabled" };

/** What may explain a difference. */
export interface Circumstances {
  readonly mode: PipelineConfig["mode"];
  /** While the two sides were read. */
  readonly runWasActive: boolean;
  /** Follow mode. */
  readonly unfollowed: Unfollowed;
  /** Incremental mode: the watermark was made by another configuration, so it is unknown which rows are pending. */
  readonly watermarkIsForeign: boolean;
}

export function hasDifferences({ missing, extra, different }: Differences): boolean {
  return missing.count + extra.count + different.count > 0;
}

/**
 * A full load changes many rows at once while it is compared, so differences may be the load itself. An
 * incremental one is read in an order that rules this out; see docs/decisions/0017.
 */
export function isExplainedByRun({ mode, runWasActive, unfollowed }: Circumstances): boolean {
  return mode !== "incremental" && (runWasActive || unfollowed === "soon");
}

export function judge(found: Differences, circumstances: Circumstances): Verdict {
  if (!hasDifferences(found)) return "MATCH";
  return isExplainedByRun(circumstances) ? "INCONCLUSIVE" : "DIFFERENT";
}

/** Sentences for a person who wonders where the differences come from. */
export function explain(found: Differences & { readonly source: SourceSide }, circumstances: Circumstances): string[] {
  const { mode, watermarkIsForeign } = circumstances;
  const isIncremental = mode === "incremental";
  const notes: [boolean, string][] = [
    [!isIncremental && hasDifferences(found), whatRunsLeave(circumstances)],
    [
      isIncremental && found.extra.count > 0,
      "Rows deleted from the source stay in the target of an incremental pipeline: a deletion leaves no trace for its cursor. They show as extra.",
    ],
    [
      isIncremental && found.different.count > 0,
      "Rows before the watermark differ. Either their incremental key did not change with them, or the target was changed by somebody else; resetting the state reads them again.",
    ],
    [
      watermarkIsForeign,
      "The checkpoint was made by another query, key or target, so it is unknown which rows are pending.",
    ],
    [found.pending.count > 0, "The pending rows are past the watermark: the next run reads them."],
    [
      found.source.rows_refused > 0,
      "Some rows of the source hold a value that does not fit the target's type; they count as missing or different.",
    ],
    [found.source.rows_duplicate > 0, "The source has several rows with one key; the last of them counts."],
  ];
  return notes.filter(([applies]) => applies).map(([, sentence]) => sentence);
}

function whatRunsLeave({ runWasActive, unfollowed }: Circumstances): string {
  if (runWasActive) {
    return "A run of this pipeline was active each time both sides were read: the differences may be its work. Ask again when it has ended.";
  }
  if (unfollowed === "nothing") return "Rows that changed in the source since the last run differ until the next one.";
  const counted = "`vitrina follow status`";
  if (unfollowed === "soon") {
    return `The source has changes that the next run follows: the differences may be theirs. Ask again when none wait; ${counted} counts them.`;
  }
  return `The source has changes that are not in the target, and no run starts by itself: the pipeline is ${unfollowed.because}. ${counted} counts them.`;
}
