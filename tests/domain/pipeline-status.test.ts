import { describe, expect, it } from "vitest";
import {
  isHeld,
  nextStatus,
  PIPELINE_EVENTS,
  PIPELINE_STATUSES,
  type PipelineEvent,
  type PipelineStatus,
  transitionsOf,
} from "../../src/domain/pipeline-status.ts";

/** SPEC R4.9 (and the takeover of R4.7), written out by hand: every change there may ever be. */
const EDGES: readonly [PipelineStatus, PipelineEvent, PipelineStatus][] = [
  ["IDLE", "request_run", "RUN_REQUESTED"],
  ["RUN_REQUESTED", "claim", "RUNNING"],
  ["RUNNING", "succeed", "IDLE"],
  ["RUNNING", "fail", "FAILED"],
  ["RUNNING", "request_pause", "PAUSE_REQUESTED"],
  ["PAUSE_REQUESTED", "pause", "PAUSED"],
  ["PAUSE_REQUESTED", "fail", "FAILED"],
  ["PAUSED", "request_run", "RUN_REQUESTED"],
  ["FAILED", "request_run", "RUN_REQUESTED"],
  ["IDLE", "request_restore", "RUN_REQUESTED"],
  ["FAILED", "request_restore", "RUN_REQUESTED"],
  ["IDLE", "fire", "RUN_REQUESTED"],
  ["FAILED", "fire_after_failure", "RUN_REQUESTED"],
  ["RUNNING", "hand_back", "RUN_REQUESTED"],
  ["PAUSE_REQUESTED", "hand_back", "PAUSED"],
  ["RUN_REQUESTED", "pause_waiting", "PAUSED"],
  ["RUNNING", "request_cancel", "CANCEL_REQUESTED"],
  ["PAUSE_REQUESTED", "request_cancel", "CANCEL_REQUESTED"],
  ["CANCEL_REQUESTED", "succeed", "IDLE"],
  ["CANCEL_REQUESTED", "fail", "FAILED"],
];

/** Back to what was before somebody asked. */
const WITHDRAWALS: readonly [PipelineStatus, PipelineEvent][] = [
  ["RUN_REQUESTED", "request_cancel"],
  ["CANCEL_REQUESTED", "cancel"],
  ["CANCEL_REQUESTED", "hand_back"],
];

/** SPEC R3.3: a request that is already fulfilled, or on its way, changes nothing and is no conflict. */
const REPEATS: readonly [PipelineStatus, PipelineEvent][] = [
  ["RUN_REQUESTED", "request_run"],
  ["RUNNING", "request_run"],
  ["PAUSE_REQUESTED", "request_pause"],
  ["PAUSED", "request_pause"],
  ["CANCEL_REQUESTED", "request_cancel"],
  ["IDLE", "request_cancel"],
  ["PAUSED", "request_cancel"],
  ["FAILED", "request_cancel"],
];

describe("the status machine", () => {
  it.each(EDGES)("R4.9 %s on %s becomes %s", (from, event, to) => {
    expect(nextStatus(from, event)).toBe(to);
  });

  it.each(WITHDRAWALS)("%s on %s becomes what it was before the request", (from, event) => {
    for (const before of ["IDLE", "PAUSED", "FAILED"] as const) expect(nextStatus(from, event, before)).toBe(before);
  });

  it.each(REPEATS)("R3.3 %s stays as it is on %s", (status, event) => {
    expect(nextStatus(status, event)).toBe(status);
  });

  it("R4.9 allows nothing else", () => {
    const listed = new Set([...EDGES, ...WITHDRAWALS, ...REPEATS].map(([from, event]) => `${from} ${event}`));
    const allowed = PIPELINE_STATUSES.flatMap((from) =>
      PIPELINE_EVENTS.filter((event) => nextStatus(from, event) !== undefined).map((event) => `${from} ${event}`),
    );
    expect(new Set(allowed)).toEqual(listed);
  });

  it("R4.9 gives SQL the same transitions", () => {
    for (const event of PIPELINE_EVENTS) {
      const { from, to } = transitionsOf(event);
      expect(from).toEqual(PIPELINE_STATUSES.filter((status) => nextStatus(status, event) !== undefined));
      const before = "FAILED";
      expect(to.map((status) => status ?? before)).toEqual(from.map((status) => nextStatus(status, event, before)));
    }
  });

  it("R4.9 gives SQL a list without any status that the event does not allow", () => {
    expect(transitionsOf("hand_back")).toEqual({
      from: ["RUNNING", "PAUSE_REQUESTED", "CANCEL_REQUESTED"],
      to: ["RUN_REQUESTED", "PAUSED", null],
    });
  });

  it("R4.7 a runner holds the pipeline while it runs or is asked to stop", () => {
    expect(PIPELINE_STATUSES.filter(isHeld)).toEqual(["RUNNING", "PAUSE_REQUESTED", "CANCEL_REQUESTED"]);
  });
});
