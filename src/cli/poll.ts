import { setTimeout as delay } from "node:timers/promises";
import { ApiProblem } from "./api-client.ts";
import { ApiUnreachable, EXIT } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** Short runs end soon; long ones need not be polled often. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1000;
const PAUSE_GROWTH = 1.5;
/** Enough for the API or its database to restart. */
const AWAY_PATIENCE_MS = 5 * 60_000;

export interface Poll<T> {
  /** May let the API wait that long for the end, which is then seen at once. */
  look(pauseMs: number): Promise<T>;
  isOver(seen: T): boolean;
  onSeen?(seen: T): void;
}

/** Polls until it is over. Waits if the API is down for a while. */
export async function poll<T>(say: Terminal["say"], { look, isOver, onSeen }: Poll<T>): Promise<T> {
  let awaySince: number | undefined;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS)) {
    const lookedAt = performance.now();
    try {
      const seen = await look(pauseMs);
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
    await delay(Math.max(0, lookedAt + pauseMs - performance.now()));
  }
}

export function mayPass(error: unknown): error is Error {
  if (error instanceof ApiProblem) return error.status >= 500 || error.status === 429;
  return error instanceof ApiUnreachable;
}

/** Ctrl-C only stops the waiting; `goesOn` tells the user so. */
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
