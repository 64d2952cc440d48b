import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isHeld,
  nextStatus,
  PIPELINE_EVENTS,
  PIPELINE_STATUSES,
  type PipelineEvent,
  type PipelineStatus,
} from "../../src/domain/pipeline-status.ts";

/** The arrows of SPEC R4.9 and R4.7, without the events that cause them. */
const ARROWS: Record<PipelineStatus, readonly PipelineStatus[]> = {
  IDLE: ["RUN_REQUESTED"],
  RUN_REQUESTED: ["RUNNING", "PAUSED"],
  RUNNING: ["IDLE", "FAILED", "PAUSE_REQUESTED", "RUN_REQUESTED"],
  PAUSE_REQUESTED: ["PAUSED", "FAILED"],
  PAUSED: ["RUN_REQUESTED"],
  FAILED: ["RUN_REQUESTED"],
};
const RUNNER_EVENTS: readonly PipelineEvent[] = ["succeed", "pause", "fail", "hand_back"];

const anyStatus = fc.constantFrom(...PIPELINE_STATUSES);
const anyEvents = fc.array(fc.constantFrom(...PIPELINE_EVENTS), { maxLength: 50 });

/** Every status a pipeline goes through; an event that is not allowed leaves it where it is. */
function walk(start: PipelineStatus, events: readonly PipelineEvent[]): PipelineStatus[] {
  const path = [start];
  for (const event of events) path.push(nextStatus(path.at(-1) ?? start, event) ?? path.at(-1) ?? start);
  return path;
}

describe("the status machine", () => {
  it("R4.9 whatever happens, a pipeline follows the arrows", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const path = walk("IDLE", events);
        for (const [position, status] of path.slice(1).entries()) {
          const before = path[position] ?? "IDLE";
          expect([before, ...ARROWS[before]]).toContain(status);
        }
      }),
    );
  });

  it("R4.9 only a claim makes a pipeline held, and only its runner or recovery ends that", () => {
    fc.assert(
      fc.property(anyStatus, fc.constantFrom(...PIPELINE_EVENTS), (status, event) => {
        const next = nextStatus(status, event) ?? status;
        if (!isHeld(status) && isHeld(next)) expect(event).toBe("claim");
        if (isHeld(status) && !isHeld(next)) expect(RUNNER_EVENTS).toContain(event);
      }),
    );
  });

  it("R3.3 asking to run or to pause twice equals asking once, after any history", () => {
    fc.assert(
      fc.property(anyEvents, fc.constantFrom("request_run" as const, "request_pause" as const), (events, request) => {
        const once = walk("IDLE", [...events, request]).at(-1);
        expect(walk("IDLE", [...events, request, request]).at(-1)).toBe(once);
      }),
    );
  });

  it("R3.3 a request that was allowed is allowed again", () => {
    fc.assert(
      fc.property(anyStatus, fc.constantFrom("request_run" as const, "request_pause" as const), (status, request) => {
        const once = nextStatus(status, request);
        if (once !== undefined) expect(nextStatus(once, request)).toBe(once);
      }),
    );
  });

  it("R4.9 from every status a pipeline can get back to IDLE", () => {
    const wayBack: readonly PipelineEvent[] = ["pause", "request_run", "claim", "succeed"];
    for (const status of PIPELINE_STATUSES) expect(walk(status, wayBack).at(-1)).toBe("IDLE");
  });
});
