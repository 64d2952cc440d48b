import type { Answer } from "./api-client.ts";
import type { Run } from "./api-types.ts";
import type { Cli } from "./cli.ts";
import { poll } from "./poll.ts";
import type { Progress } from "./progress.ts";
import type { Watched } from "./run-progress.ts";

/** One request to run, which its number tells from earlier and later ones. */
export interface RunRequest {
  readonly id: string;
  readonly name: string;
  readonly number: number;
}

type Status = Answer<"getPipelineStatus">;

const AT_REST: readonly Status["status"][] = ["IDLE", "FAILED", "PAUSED"];
const SAY_UNCLAIMED_AFTER_MS = 10_000;

/**
 * Waits until the request is served, over all its attempts, also those of another runner. Gives its last run, or null
 * when there is none.
 */
export async function followRun(
  cli: Cli,
  request: RunRequest,
  say: Progress["say"],
  onSeen: (watched: Watched) => void,
): Promise<Run | null> {
  const params = { id: request.id };
  const startedAt = performance.now();
  let hintIsDue = true;
  const status = await poll(say, {
    look: () => cli.api.request("getPipelineStatus", { params }),
    isOver: (seen) => seen.run_request !== request.number || AT_REST.includes(seen.status),
    onSeen(seen) {
      onSeen({ name: request.name, status: seen.status, run: ownRun(seen, request) });
      const isLate = performance.now() - startedAt > SAY_UNCLAIMED_AFTER_MS;
      if (!hintIsDue || !isLate || seen.status !== "RUN_REQUESTED" || seen.last_run?.status === "RUNNING") return;
      say(`No runner has taken ${request.name} yet. vitrina runners shows who is there.`);
      hintIsDue = false;
    },
  });
  const run = ownRun(status, request) ?? (await lastRunOf(cli, request, say));
  if (run !== null) onSeen({ name: request.name, status: status.status, run });
  return run;
}

function ownRun({ last_run: run }: Status, { number }: RunRequest): Run | null {
  return run?.run_request === number ? run : null;
}

/** Somebody asked again before we looked. */
async function lastRunOf({ api }: Cli, { id, number }: RunRequest, say: Progress["say"]): Promise<Run | null> {
  const { items } = await poll(say, {
    look: () => api.request("listRuns", { params: { id }, query: { run_request: number, limit: 1 } }),
    isOver: () => true,
  });
  return items[0] ?? null;
}
