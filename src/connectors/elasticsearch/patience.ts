import { setTimeout as delay } from "node:timers/promises";
import { VitrinaError } from "../../domain/error-catalogue.ts";

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5000;

/** How long a run puts up with a failing cluster before it gives up: each wait is longer than the last. */
export class Patience {
  readonly #limitMs: number;
  readonly #lost: AbortSignal;
  #since: number | undefined;
  #waitMs = FIRST_WAIT_MS;

  constructor(limitMs: number, lost: AbortSignal) {
    this.#limitMs = limitMs;
    this.#lost = lost;
  }

  /** Throws the failure when the time is used up. */
  async wait(failure: VitrinaError, atLeastMs = 0): Promise<void> {
    const now = performance.now();
    this.#since ??= now;
    if (now - this.#since > this.#limitMs) throw failure;
    // Jitter: runners that hit the same failure do not all come back at the same moment.
    const ms = Math.max(atLeastMs, this.#waitMs * (0.5 + Math.random() / 2));
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
    await delay(ms, undefined, { signal: this.#lost }).catch(() => {
      throw new VitrinaError(
        "LEASE_LOST",
        "The run was told to end, or lost its lease, while the search cluster was unavailable.",
        { cause: failure },
      );
    });
  }

  rest(): void {
    this.#since = undefined;
    this.#waitMs = FIRST_WAIT_MS;
  }
}
