import { count, plural } from "../domain/counted.ts";
import type { ApiAnswer } from "./api-client.ts";
import type { Run } from "./api-types.ts";
import type { Cli } from "./cli.ts";
import { poll } from "./poll.ts";
import type { ProgressDisplay, ProgressLine } from "./progress.ts";
import { clock, localTime } from "./words.ts";

export type StatusAnswer = ApiAnswer<"getPipelineStatus">;

/** One request to run; its number distinguishes it from earlier and later ones. */
export interface RunRequest {
  readonly id: string;
  readonly name: string;
  readonly number: number;
}

export function waitingSentence({ reason, since, until }: NonNullable<StatusAnswer["waiting"]>): string {
  return `waiting since ${localTime(since)}, next attempt at ${localTime(until)}: ${reason}`;
}

const SAY_UNCLAIMED_AFTER_MS = 10_000;

/** Waits until the request is done, through all its attempts, including those of other runners. */
export function followRun(
  { api }: Cli,
  { id, name, number }: RunRequest,
  say: ProgressDisplay["say"],
  onSeen: (status: StatusAnswer) => void,
): Promise<StatusAnswer> {
  const startedAt = performance.now();
  let isHintDue = true;
  let toldWaiting: string | undefined;
  let toldNotesOf: string | undefined;
  return poll(say, {
    look: (pauseMs) =>
      api.request("getPipelineStatus", {
        params: { id },
        query: { run_request: number, wait: `${Math.round(pauseMs)}ms` },
      }),
    isOver: ({ over }) => over,
    onSeen(seen) {
      onSeen(seen);
      if (seen.waiting !== null && seen.waiting.until !== toldWaiting) {
        toldWaiting = seen.waiting.until;
        say(`${name} ${waitingSentence(seen.waiting)}`);
      }
      const { last_run: run } = seen;
      if (run !== null && run.id !== toldNotesOf && run.notes.length > 0) {
        toldNotesOf = run.id;
        for (const note of run.notes) say(`${name}: ${note}`);
      }
      const isLate = performance.now() - startedAt > SAY_UNCLAIMED_AFTER_MS;
      if (!isHintDue || !isLate || seen.status !== "RUN_REQUESTED" || seen.waiting !== null) return;
      isHintDue = false;
      say(`No runner has taken ${name} yet. vitrina runners lists the runners.`);
    },
  });
}

/** The line of one pipeline, with the newest run of the request. */
export function runProgress({ name, status, over, last_run: run }: StatusAnswer): ProgressLine {
  // A failed run is not the end while the request may be retried.
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
    plural(run.batches, "batch", "batches"),
    clock(endedAt - Date.parse(run.started_at)),
  ].join("  ");
}

/** An estimate that was exceeded is no longer useful. */
function rowsText({ status, rows_read: rows, estimated_rows: estimate }: Run): string {
  if (status !== "RUNNING" || estimate === null || estimate < rows || estimate === 0) return plural(rows, "row");
  return `${count(rows)} of about ${plural(estimate, "row")} (${Math.floor((rows / estimate) * 100)} %)`;
}
