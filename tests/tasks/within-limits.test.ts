import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { withinLimits } from "../../src/tasks/within-limits.ts";

const timeoutError = (): Error => new Error("time is over");

describe("withinLimits", () => {
  it("settles as the work does", async () => {
    const limits = { signal: undefined, timeoutMs: 1000, timeoutError };
    expect(await withinLimits(Promise.resolve(1), limits)).toBe(1);
    await expect(withinLimits(Promise.reject(new Error("broken")), limits)).rejects.toThrow("broken");
  });

  it("rejects when the time is over", async () => {
    const limits = { signal: undefined, timeoutMs: 10, timeoutError };
    await expect(withinLimits(new Promise(() => undefined), limits)).rejects.toThrow("time is over");
  });

  it("rejects with the reason of a signal that was aborted before, and minds the work's own end", async () => {
    const reason = new Error("not wanted");
    const work = delay(5).then(() => Promise.reject(new Error("too late")));
    const limits = { signal: AbortSignal.abort(reason), timeoutMs: 1000, timeoutError };
    await expect(withinLimits(work, limits)).rejects.toBe(reason);
    await delay(20);
  });

  it("does not blame the work when this process was busy", async () => {
    const work = readFile(new URL(import.meta.url), "utf8");
    const result = withinLimits(work, { signal: undefined, timeoutMs: 50, timeoutError });
    const until = performance.now() + 500;
    while (performance.now() < until);
    expect(await result).toContain("this very text");
  });
});
