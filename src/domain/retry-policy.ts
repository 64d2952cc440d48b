/** What the runner does after a failed attempt: decided by the error's retry class, not by guessing from its text. */
import type { RetryClass } from "./error-catalogue.ts";

export interface RetryPolicy {
  /** How often a run is tried in all, the first time included. */
  readonly maxAttempts: number;
  /** The wait after the first, second, … failed attempt; the last one repeats. */
  readonly backoffMs: readonly number[];
}

/** SPEC R4.6. The third wait comes into play when an operator allows more attempts. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = { maxAttempts: 3, backoffMs: [1000, 2000, 4000] };

/**
 * - `fail`: the run is over and the pipeline is `FAILED`.
 * - `leave`: the database is away, so nothing can be recorded; the lease runs out and recovery takes over.
 * - `drop`: another runner holds the pipeline; stop without writing anything.
 */
export type RetryDecision =
  | { readonly action: "retry"; readonly delayMs: number }
  | { readonly action: "fail" }
  | { readonly action: "leave" }
  | { readonly action: "drop" };

/** `attempt` is the number of the attempt that just failed, counted from 1. */
export function decideRetry(retryClass: RetryClass, attempt: number, policy: RetryPolicy): RetryDecision {
  switch (retryClass) {
    case "retry":
    case "wait":
      return attempt < policy.maxAttempts
        ? { action: "retry", delayMs: backoffAfter(attempt, policy) }
        : { action: "fail" };
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
 * True for trouble that ends without anybody's help. Whoever meets it may try again later, and says nothing about the
 * configuration, the source or the target.
 */
export function mayPass(retryClass: RetryClass): boolean {
  return retryClass === "wait" || retryClass === "reconnect";
}

function backoffAfter(attempt: number, { backoffMs }: RetryPolicy): number {
  return backoffMs[attempt - 1] ?? backoffMs.at(-1) ?? 0;
}
