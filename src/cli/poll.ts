import { setTimeout as delay } from "node:timers/promises";
import { ApiProblem } from "./api-client.ts";
import { ApiUnreachable, EXIT } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** Short runs are over soon; long ones need not be asked often. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1000;
const PAUSE_GROWTH = 1.5;
/** An API that restarts, or whose database does, is back by then. */
const AWAY_PATIENCE_MS = 5 * 60_000;

export interface Poll<T> {
  look(): Promise<T>;
  isOver(seen: T): boolean;
  onSeen?(seen: T): void;
}

/** Looks again and again until it is over. An API that is away for a while is waited for. */
export async function poll<T>(say: Terminal["say"], { look, isOver, onSeen }: Poll<T>): Promise<T> {
  let awaySince: number | undefined;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS)) {
    try {
      const seen = await look();
      if (awaySince !== undefined) say("The API answers again.");
      awaySince = undefined;
      onSeen?.(seen);
      if (isOver(seen)) return seen;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (awaySince === undefined) say(`${error.message} Waiting for it; Ctrl-C stops waiting.`);
      awaySince ??= performance.now();
      if (performance.now() - awaySince > AWAY_PATIENCE_MS) throw error;
    }
    await delay(pauseMs);
  }
}

export function mayPass(error: unknown): error is Error {
  if (error instanceof ApiProblem) return error.status >= 500 || error.status === 429;
  return error instanceof ApiUnreachable;
}

/** Ctrl-C ends the waiting only; `goesOn` says so. */
export async function interruptible<T>(terminal: Terminal, goesOn: string, wait: () => Promise<T>): Promise<T> {
  const stop = (): void => {
    terminal.say(`\nStopped waiting. ${goesOn}`);
    process.exit(EXIT.interrupted);
  };
  process.once("SIGINT", stop);
  try {
    return await wait();
  } finally {
    process.removeListener("SIGINT", stop);
  }
}
