import type { Answer } from "./api-client.ts";
import type { Cli } from "./cli.ts";
import { poll } from "./poll.ts";
import type { Progress } from "./progress.ts";
import { localTime } from "./words.ts";

export type RunStatus = Answer<"getPipelineStatus">;

/** One request to run, which its number tells from earlier and later ones. */
export interface RunRequest {
  readonly id: string;
  readonly name: string;
  readonly number: number;
}

export function waitingSentence({ reason, since, until }: NonNullable<RunStatus["waiting"]>): string {
  return `waits since ${localTime(since)}, and tries again at ${localTime(until)}: ${reason}`;
}

const SAY_UNCLAIMED_AFTER_MS = 10_000;

/** Waits until the request is served, over all its attempts, also those of another runner. */
export function followRun(
  { api }: Cli,
  { id, name, number }: RunRequest,
  say: Progress["say"],
  onSeen: (status: RunStatus) => void,
): Promise<RunStatus> {
  const startedAt = performance.now();
  let isHintDue = true;
  let toldWaiting: string | undefined;
  let toldNotesOf: string | undefined;
  return poll(say, {
    look: () => api.request("getPipelineStatus", { params: { id }, query: { run_request: number } }),
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
      say(`No runner has taken ${name} yet. vitrina runners shows who is there.`);
    },
  });
}
