import { describe, expect, it } from "vitest";
import type { RetryClass } from "../../src/domain/error-catalogue.ts";
import {
  DEFAULT_RETRY_POLICY,
  decideRetry,
  type FailedAttempt,
  mayPass,
  type RetryDecision,
  type RetryPolicy,
} from "../../src/domain/retry-policy.ts";
import { EVERY_ERROR } from "../support/every-error.ts";

const HOUR_MS = 3_600_000;
const failed = (given: Partial<FailedAttempt>): FailedAttempt => ({
  attempt: 1,
  troubledMs: 0,
  retryForMs: HOUR_MS,
  ...given,
});
const decide = (retryClass: RetryClass, given: Partial<FailedAttempt>, policy: RetryPolicy = DEFAULT_RETRY_POLICY) =>
  decideRetry(retryClass, failed(given), policy, 1);

describe("decideRetry", () => {
  it("R4.6 tries three times with 1 s, 2 s, 4 s unless configured otherwise", () => {
    expect(DEFAULT_RETRY_POLICY).toMatchObject({ maxAttempts: 3, backoffMs: [1000, 2000, 4000] });
  });

  it.each<[number, RetryDecision]>([
    [1, { action: "retry", delayMs: 1000 }],
    [2, { action: "retry", delayMs: 2000 }],
    [3, { action: "fail" }],
    [4, { action: "fail" }],
  ])("R4.6 after attempt %i of an ordinary error decides %j", (attempt, decision) => {
    expect(decide("retry", { attempt })).toEqual(decision);
    // The same for trouble that passes, where somebody does not want to wait for it.
    expect(decide("wait", { attempt, retryForMs: 0 })).toEqual(decision);
  });

  it.each<[RetryClass, RetryDecision["action"]]>([
    ["never", "fail"],
    ["row", "fail"],
    ["reconnect", "leave"],
    ["fenced", "drop"],
  ])("R4.6 never retries the class %s inside the run: %s", (retryClass, action) => {
    for (const attempt of [1, 2, 3, 4]) expect(decide(retryClass, { attempt })).toEqual({ action });
  });

  it("repeats the last wait when there are more attempts than waits, and does not wait without any", () => {
    const patient: RetryPolicy = { ...DEFAULT_RETRY_POLICY, maxAttempts: 10, backoffMs: [5, 7] };
    expect(decide("retry", { attempt: 9 }, patient)).toEqual({ action: "retry", delayMs: 7 });
    expect(decide("retry", {}, { ...patient, backoffMs: [] })).toEqual({ action: "retry", delayMs: 0 });
  });
});

describe("waiting until trouble passes", () => {
  it.each([
    [0, 1000],
    [500, 1000],
    [3000, 3000],
    [50_000, 50_000],
    [1_000_000, 60_000],
  ])("after %i ms of trouble pauses for %i ms, and for half of it at least", (troubledMs, delayMs) => {
    expect(decide("wait", { troubledMs })).toEqual({ action: "wait", delayMs });
    const shortest = decideRetry("wait", failed({ troubledMs }), DEFAULT_RETRY_POLICY, 0);
    expect(shortest).toEqual({ action: "wait", delayMs: delayMs / 2 });
  });

  it("ends at the limit of the pipeline: with a last attempt there, and not after it", () => {
    expect(decide("wait", { troubledMs: HOUR_MS - 10 })).toEqual({ action: "wait", delayMs: 10 });
    expect(decide("wait", { troubledMs: HOUR_MS })).toEqual({ action: "fail" });
  });

  it("pauses as long as was asked for, within the limit of the pipeline", () => {
    expect(decide("wait", { askedMs: 90_000 })).toEqual({ action: "wait", delayMs: 90_000 });
    expect(decide("wait", { troubledMs: 3000, askedMs: 10 })).toEqual({ action: "wait", delayMs: 3000 });
    expect(decide("wait", { troubledMs: HOUR_MS - 10, askedMs: 90_000 })).toEqual({ action: "wait", delayMs: 10 });
  });

  it("is for exactly the errors that need nobody's help", () => {
    const passing = EVERY_ERROR.filter(([, { retry }]) => mayPass(retry));
    expect(passing.map(([code]) => code).sort()).toEqual([
      "DATABASE_BUSY",
      "DATABASE_UNAVAILABLE",
      "DISK_FULL",
      "SEARCH_BUSY",
      "SEARCH_UNAVAILABLE",
      "TASK_RETRY_LATER",
      "TOO_MANY_CONNECTIONS",
    ]);
  });
});
