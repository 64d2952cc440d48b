import { setTimeout as delay } from "node:timers/promises";

/** Quick things are noticed quickly; slow ones are not polled so often that polling slows them down. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;
const GROWTH = 1.3;

/** Nothing here takes so long, but a machine may be busy with other work. Less for mutations, where most waiting is futile. */
const PATIENCE_MS = 1000 * Number(process.env["TEST_PATIENCE_SECONDS"] ?? 480);

/** Waits for a condition instead of sleeping: resolves with the first value that is not undefined or false. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * GROWTH, LONGEST_PAUSE_MS)) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`Gave up after ${PATIENCE_MS} ms of waiting until ${what}.`);
    await delay(pauseMs);
  }
}
