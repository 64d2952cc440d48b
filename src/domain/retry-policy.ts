/** What the runner does after a failed attempt: decided by the error's retry class, never by its text. */
import type { RetryClass } from "./error-catalogue.ts";

export interface RetryPolicy {
  /** How often a run is tried in total, the first time included. */
  readonly maxAttempts: number;
  /** The wait after the first, second, … failed attempt; the last one repeats. */
  readonly backoffMs: readonly number[];
  /** The longest pause while waiting for a temporary problem to go away. */
  readonly longestPauseMs: number;
}

/** SPEC R4.6. The third wait is used when an operator allows more attempts. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  maxAttempts: 3,
  backoffMs: [1000, 2000, 4000],
  longestPauseMs: 60_000,
};

export interface FailedAttempt {
  /** Which one failed, counted from 1 since the pipeline was claimed. */
  readonly attempt: number;
  /** How long attempts have been failing without a batch in between; 0 for the first. */
  readonly troubledMs: number;
  /** How long the pipeline may wait for the problem to go away; 0: it is only tried a few times. */
  readonly retryForMs: number;
  /** The pause that the failed part asks for. */
  readonly askedMs?: number | undefined;
}

/**
 * - `retry`: the same runner makes the next attempt.
 * - `wait`: the pipeline is given back, and claimed again after the pause.
 * - `fail`: the run is over and the pipeline is `FAILED`.
 * - `leave`: the database cannot be reached, so nothing can be recorded; the lease runs out and recovery takes over.
 * - `drop`: another runner holds the pipeline; stop without writing anything.
 */
export type RetryDecision =
  | { readonly action: "retry" | "wait"; readonly delayMs: number }
  | { readonly action: "fail" }
  | { readonly action: "leave" }
  | { readonly action: "drop" };

/** `random`, from 0 to 1, keeps pipelines with the same problem from all coming back at once. */
export function decideRetry(
  retryClass: RetryClass,
  failed: FailedAttempt,
  policy: RetryPolicy,
  random: number,
): RetryDecision {
  switch (retryClass) {
    case "retry":
      return tryAgain(failed, policy);
    case "wait":
      return failed.retryForMs === 0 ? tryAgain(failed, policy) : waitLonger(failed, policy, random);
    case "never":
    case "row":
      return { action: "fail" };
    case "reconnect":
      return { action: "leave" };
    case "fenced":
      return { action: "drop" };
  }
}

/**
 * True for problems that go away by themselves. The caller may try again later, and should draw no conclusion about the
 * configuration, the source or the target.
 */
export function mayPass(retryClass: RetryClass): boolean {
  return retryClass === "wait" || retryClass === "reconnect";
}

function tryAgain({ attempt }: FailedAttempt, { maxAttempts, backoffMs }: RetryPolicy): RetryDecision {
  if (attempt >= maxAttempts) return { action: "fail" };
  return { action: "retry", delayMs: backoffMs[attempt - 1] ?? backoffMs.at(-1) ?? 0 };
}

/** A pause as long as the problem has lasted doubles the time with each attempt. The last attempt is at the limit. */
function waitLonger(
  { troubledMs, retryForMs, askedMs = 0 }: FailedAttempt,
  { backoffMs, longestPauseMs }: RetryPolicy,
  random: number,
): RetryDecision {
  if (troubledMs >= retryForMs) return { action: "fail" };
  const pauseMs = Math.min(Math.max(troubledMs, backoffMs[0] ?? 0), longestPauseMs) * (0.5 + random / 2);
  return { action: "wait", delayMs: Math.min(Math.max(Math.ceil(pauseMs), askedMs), retryForMs - troubledMs) };
}
