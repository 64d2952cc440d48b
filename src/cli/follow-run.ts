import type { Answer } from "./api-client.ts";
import type { Cli } from "./cli.ts";
import { poll } from "./poll.ts";
import type { Progress } from "./progress.ts";

export type RunStatus = Answer<"getPipelineStatus">;

/** One request to run, which its number tells from earlier and later ones. */
export interface RunRequest {
  readonly id: string;
  readonly name: string;
  readonly number: number;
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
  return poll(say, {
    look: () => api.request("getPipelineStatus", { params: { id }, query: { run_request: number } }),
    isOver: ({ over }) => over,
    onSeen(seen) {
      onSeen(seen);
      const isLate = performance.now() - startedAt > SAY_UNCLAIMED_AFTER_MS;
      if (!isHintDue || !isLate || seen.status !== "RUN_REQUESTED") return;
      isHintDue = false;
      say(`No runner has taken ${name} yet. vitrina runners shows who is there.`);
    },
  });
}
