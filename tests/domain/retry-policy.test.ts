import { describe, expect, it } from "vitest";
import type { RetryClass } from "../../src/domain/error-catalogue.ts";
import {
  DEFAULT_RETRY_POLICY,
  decideRetry,
  type RetryDecision,
  type RetryPolicy,
} from "../../src/domain/retry-policy.ts";

describe("decideRetry", () => {
  it("R4.6 tries three times with 1 s, 2 s, 4 s unless configured otherwise", () => {
    expect(DEFAULT_RETRY_POLICY).toEqual({ maxAttempts: 3, backoffMs: [1000, 2000, 4000] });
  });

  it.each<[number, RetryDecision]>([
    [1, { action: "retry", delayMs: 1000 }],
    [2, { action: "retry", delayMs: 2000 }],
    [3, { action: "fail" }],
    [4, { action: "fail" }],
  ])("R4.6 after attempt %i of an ordinary error decides %j", (attempt, decision) => {
    expect(decideRetry("retry", attempt, DEFAULT_RETRY_POLICY)).toEqual(decision);
  });

  it.each<[RetryClass, RetryDecision["action"]]>([
    ["never", "fail"],
    ["row", "fail"],
    ["reconnect", "leave"],
    ["fenced", "drop"],
  ])("R4.6 never retries the class %s inside the run: %s", (retryClass, action) => {
    for (const attempt of [1, 2, 3, 4])
      expect(decideRetry(retryClass, attempt, DEFAULT_RETRY_POLICY)).toEqual({ action });
  });

  it("repeats the last wait when there are more attempts than waits, and does not wait without any", () => {
    const patient: RetryPolicy = { maxAttempts: 10, backoffMs: [5, 7] };
    expect(decideRetry("retry", 9, patient)).toEqual({ action: "retry", delayMs: 7 });
    expect(decideRetry("retry", 1, { ...patient, backoffMs: [] })).toEqual({ action: "retry", delayMs: 0 });
  });
});
