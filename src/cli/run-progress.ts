import type { Run } from "./api-types.ts";
import type { RunStatus } from "./follow-run.ts";
import type { ProgressLine } from "./progress.ts";
import { clock, count, plural } from "./words.ts";

/** What is waited for: a pipeline, and the newest run of the request. */
export function runProgress({ name, status, over, last_run: run }: RunStatus): ProgressLine {
  // A run that failed is not the end as long as the request is served.
  const state = over && run !== null ? run.status : status;
  const attempt = run !== null && run.attempt > 1 ? `attempt ${run.attempt}` : undefined;
  const step = [state, run?.id].join(" ");
  const parts = [state, attempt, run === null ? undefined : runText(run)];
  return { name, step, text: parts.filter((part) => part !== undefined).join("  ") };
}

export function runText(run: Run): string {
  const endedAt = run.finished_at === null ? Date.now() : Date.parse(run.finished_at);
  return [
    rowsText(run),
    `${count(run.rows_per_second)} rows/s`,
    plural(run.batches, "batch").replace(/hs$/, "hes"),
    clock(endedAt - Date.parse(run.started_at)),
  ].join("  ");
}

/** An estimate that was passed tells nothing any more. */
function rowsText({ status, rows_read: rows, estimated_rows: estimate }: Run): string {
  if (status !== "RUNNING" || estimate === null || estimate < rows || estimate === 0) return plural(rows, "row");
  return `${count(rows)} of about ${plural(estimate, "row")} (${Math.floor((rows / estimate) * 100)} %)`;
}
