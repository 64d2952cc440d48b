import { setTimeout as delay } from "node:timers/promises";

/** What happens soon is seen soon; what takes long is not asked for so often that the asking slows it down. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;
const GROWTH = 1.3;

/** Nothing here takes so long, but a machine may be busy with other work. Less where most waiting is in vain: mutations. */
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
    if (performance.now() > deadline) throw new Error(`Waited ${PATIENCE_MS} ms in vain until ${what}.`);
    await delay(pauseMs);
  }
}
