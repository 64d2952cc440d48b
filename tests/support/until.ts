import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 20;

/** Waits for a condition instead of sleeping: resolves with the first value that is not undefined or false. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 90_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain until ${what}.`);
    await delay(LOOK_EVERY_MS);
  }
}
