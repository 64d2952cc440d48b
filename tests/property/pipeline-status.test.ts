import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isAtRest,
  isHeld,
  nextStatus,
  PIPELINE_EVENTS,
  PIPELINE_STATUSES,
  type PipelineEvent,
  type PipelineStatus,
  type RestingStatus,
} from "../../src/domain/pipeline-status.ts";

/** The arrows of SPEC R4.9 and R4.7, without the events that cause them. */
const ARROWS: Record<PipelineStatus, readonly PipelineStatus[]> = {
  IDLE: ["RUN_REQUESTED"],
  RUN_REQUESTED: ["RUNNING", "IDLE", "PAUSED", "FAILED"],
  RUNNING: ["IDLE", "FAILED", "PAUSE_REQUESTED", "CANCEL_REQUESTED", "RUN_REQUESTED"],
  PAUSE_REQUESTED: ["PAUSED", "FAILED", "CANCEL_REQUESTED"],
  CANCEL_REQUESTED: ["IDLE", "PAUSED", "FAILED"],
  PAUSED: ["RUN_REQUESTED"],
  FAILED: ["RUN_REQUESTED"],
};
const RUNNER_EVENTS: readonly PipelineEvent[] = ["succeed", "pause", "cancel", "fail", "hand_back"];

const REQUESTS = ["request_run", "request_pause", "request_cancel"] as const;

const anyStatus = fc.constantFrom(...PIPELINE_STATUSES);
const anyEvents = fc.array(fc.constantFrom(...PIPELINE_EVENTS), { maxLength: 50 });

/**
 * Every status a pipeline goes through, as the meta-store keeps what was before a request; an event that is not allowed
 * leaves it where it is.
 */
function walk(start: PipelineStatus, events: readonly PipelineEvent[]): PipelineStatus[] {
  const path = [start];
  let before: RestingStatus = "IDLE";
  for (const event of events) {
    const status = path.at(-1) ?? start;
    if (isAtRest(status)) before = status;
    path.push(nextStatus(status, event, before) ?? status);
  }
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

  it("R3.3 asking to run, to pause or to cancel twice equals asking once, after any history", () => {
    fc.assert(
      fc.property(anyEvents, fc.constantFrom(...REQUESTS), (events, request) => {
        const once = walk("IDLE", [...events, request]).at(-1);
        expect(walk("IDLE", [...events, request, request]).at(-1)).toBe(once);
      }),
    );
  });

  it("R3.3 a request that was allowed is allowed again", () => {
    fc.assert(
      fc.property(anyStatus, fc.constantFrom(...REQUESTS), (status, request) => {
        const once = nextStatus(status, request);
        if (once !== undefined) expect(nextStatus(once, request)).toBe(once);
      }),
    );
  });

  it("R4.9 from every status a pipeline can get back to IDLE", () => {
    const wayBack: readonly PipelineEvent[] = ["pause", "request_run", "claim", "succeed"];
    for (const status of PIPELINE_STATUSES) expect(walk(status, wayBack).at(-1)).toBe("IDLE");
  });

  it("whatever happens between a request and its end, a cancel leaves the pipeline as it was before", () => {
    const meanwhile = fc.constantFrom<PipelineEvent>(
      "request_run",
      "claim",
      "request_pause",
      "claim",
      "request_cancel",
    );
    fc.assert(
      fc.property(
        fc.constantFrom<RestingStatus>("IDLE", "PAUSED", "FAILED"),
        fc.array(meanwhile, { maxLength: 10 }),
        fc.constantFrom<PipelineEvent>("cancel", "hand_back"),
        (before, events, end) => {
          const statusAfter = walk(before, ["request_run", ...events, "request_cancel", end]).at(-1);
          expect(statusAfter).toBe(before);
        },
      ),
    );
  });
});
