import { afterEach, expect, it, vi } from "vitest";
import type { Follower } from "../../src/connectors/follower.ts";
import type { Connectors } from "../../src/connectors/index.ts";
import { KeptSources } from "../../src/data-plane/follow/kept-sources.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { TaskPlan } from "../../src/domain/task-plan.ts";
import { until } from "../support/until.ts";

/** What a run leaves open for the next one, where the source does not answer any more. */

afterEach(() => {
  vi.useRealTimers();
});

const never = <T>(): Promise<T> => new Promise(() => undefined);
const PIPELINE = { id: "p", config_version: 1 } as unknown as Pipeline;
const PLAN = { readerQuery: "SELECT" } as unknown as TaskPlan;

it("is given up for a new one if nobody answers, and its end is not waited for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const ended: string[] = [];
  let opened = 0;
  const connectors = {
    source: async () => {
      opened += 1;
      return { examine: async () => [], close: async () => void ended.push("source") };
    },
  } as unknown as Connectors;
  let asked = false;
  const isCurrent = (): Promise<boolean> => {
    asked = true;
    return never();
  };
  const close = (): Promise<void> => {
    ended.push("follower");
    return never();
  };
  const follower = { isCurrent, close } as unknown as Follower;

  const sources = new KeptSources();
  const { signal } = new AbortController();
  const first = await sources.open(connectors, PIPELINE, PLAN, signal);
  first.following = { follower, key: ["id"] };
  await sources.release(PIPELINE, first, true);
  const opening = sources.open(connectors, PIPELINE, PLAN, signal);
  await until("it is asked", () => asked);
  await vi.advanceTimersByTimeAsync(10_000);
  const next = await Promise.race([opening, new Promise((resolve) => setImmediate(resolve, "still waiting"))]);
  expect(next).not.toBe("still waiting");
  expect(next).not.toBe(first);
  expect(opened).toBe(2);
  expect(ended.sort()).toEqual(["follower", "source"]);
});
