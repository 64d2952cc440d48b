import { describe, expect, it } from "vitest";
import { leaseTiming, MAX_LOSSES } from "../../src/domain/lease.ts";

describe("leaseTiming", () => {
  it("R4.7 beats three times per lease", () => {
    expect(leaseTiming(30_000)).toMatchObject({ durationMs: 30_000, heartbeatMs: 10_000 });
  });

  it.each([100, 101, 1000, 30_000, 600_000])(
    "R4.7 a session of a lease of %i ms ends before the lease does",
    (durationMs) => {
      const timing = leaseTiming(durationMs);
      expect(timing.lockTimeoutMs).toBeGreaterThan(0);
      expect(timing.idleTimeoutMs).toBeGreaterThan(0);
      expect(timing.lockTimeoutMs + timing.idleTimeoutMs).toBeLessThan(durationMs);
    },
  );

  it.each([0, 99, -1, Number.NaN, Number.POSITIVE_INFINITY])("refuses a lease of %s ms", (durationMs) => {
    expect(() => leaseTiming(durationMs)).toThrow(expect.objectContaining({ code: "SETTINGS_INVALID" }));
  });
});

it("R4.7 gives up after three losses in a row", () => {
  expect(MAX_LOSSES).toBe(3);
});
