/**
 * The status machine of a pipeline: the one table that both the API and the runner use. The SQL that changes a status
 * gets the allowed transitions from here, and updates by compare-and-set.
 */

export const PIPELINE_STATUSES = [
  "IDLE",
  "RUN_REQUESTED",
  "RUNNING",
  "PAUSE_REQUESTED",
  "CANCEL_REQUESTED",
  "PAUSED",
  "FAILED",
] as const;
export type PipelineStatus = (typeof PIPELINE_STATUSES)[number];

/** Nothing is requested or under way: the pipeline stays like this until somebody, or its schedule, acts. */
export const RESTING_STATUSES = ["IDLE", "PAUSED", "FAILED"] as const satisfies readonly PipelineStatus[];
export type RestingStatus = (typeof RESTING_STATUSES)[number];

/**
 * What can happen to a pipeline.
 * - `request_run`, `request_pause`, `request_cancel`: somebody asks, through the API or the CLI.
 * - `request_restore`: somebody asks to bring the previous target back. Not while a load is paused: it would be lost.
 *   Until that has ended, a request to run or to pause is refused, whatever the status: it is about loads.
 * - `fire`, `fire_after_failure`: the schedule asks, a sweep is due, or the source has changed; the latter after a failure
 *   that may have been temporary.
 * - `pause_waiting`: a request to pause while the pipeline waits for a temporary problem to go away: no batch is under way.
 * - `claim`: a runner takes the pipeline.
 * - `succeed`, `pause`, `cancel`, `fail`: the runner that holds it ends its run.
 * - `hand_back`: the runner shuts down, or recovery takes the pipeline from a lost runner; the work continues from
 *   the checkpoint.
 */
export const PIPELINE_EVENTS = [
  "request_run",
  "request_pause",
  "request_cancel",
  "request_restore",
  "fire",
  "fire_after_failure",
  "pause_waiting",
  "claim",
  "succeed",
  "pause",
  "cancel",
  "fail",
  "hand_back",
] as const;
export type PipelineEvent = (typeof PIPELINE_EVENTS)[number];

/** The status that the pipeline had before its run was requested; it is kept until the run has ended. */
const BEFORE = "before the request";

type Transitions = Partial<Record<PipelineStatus, PipelineStatus | typeof BEFORE>>;

/** A transition to the same status makes a request repeatable: asking twice is not a conflict. */
const TRANSITIONS: Record<PipelineEvent, Transitions> = {
  request_run: {
    IDLE: "RUN_REQUESTED",
    PAUSED: "RUN_REQUESTED",
    FAILED: "RUN_REQUESTED",
    RUN_REQUESTED: "RUN_REQUESTED",
    RUNNING: "RUNNING",
  },
  request_pause: { RUNNING: "PAUSE_REQUESTED", PAUSE_REQUESTED: "PAUSE_REQUESTED", PAUSED: "PAUSED" },
  request_cancel: {
    RUN_REQUESTED: BEFORE,
    RUNNING: "CANCEL_REQUESTED",
    PAUSE_REQUESTED: "CANCEL_REQUESTED",
    CANCEL_REQUESTED: "CANCEL_REQUESTED",
    IDLE: "IDLE",
    PAUSED: "PAUSED",
    FAILED: "FAILED",
  },
  request_restore: { IDLE: "RUN_REQUESTED", FAILED: "RUN_REQUESTED" },
  fire: { IDLE: "RUN_REQUESTED" },
  fire_after_failure: { FAILED: "RUN_REQUESTED" },
  pause_waiting: { RUN_REQUESTED: "PAUSED" },
  claim: { RUN_REQUESTED: "RUNNING" },
  // Too late: everything has been read and written.
  succeed: { RUNNING: "IDLE", CANCEL_REQUESTED: "IDLE" },
  pause: { PAUSE_REQUESTED: "PAUSED" },
  cancel: { CANCEL_REQUESTED: BEFORE },
  fail: { RUNNING: "FAILED", PAUSE_REQUESTED: "FAILED", CANCEL_REQUESTED: "FAILED" },
  hand_back: { RUNNING: "RUN_REQUESTED", PAUSE_REQUESTED: "PAUSED", CANCEL_REQUESTED: BEFORE },
};

/**
 * The status after the event, or `undefined` where the machine does not allow it. `before` is the one that the
 * pipeline had before its run was requested.
 */
export function nextStatus(
  status: PipelineStatus,
  event: PipelineEvent,
  before: RestingStatus = "IDLE",
): PipelineStatus | undefined {
  const next = TRANSITIONS[event][status];
  return next === BEFORE ? before : next;
}

/**
 * The allowed changes of an event as two parallel lists, the form in which SQL takes them; null stands for the status
 * before the request, `status_before`.
 */
export function transitionsOf(event: PipelineEvent): { from: PipelineStatus[]; to: (PipelineStatus | null)[] } {
  const allowed = PIPELINE_STATUSES.flatMap((from) => {
    const to = TRANSITIONS[event][from];
    return to === undefined ? [] : [{ from, to: to === BEFORE ? null : to }];
  });
  return { from: allowed.map(({ from }) => from), to: allowed.map(({ to }) => to) };
}

/** True while a runner holds the pipeline by a lease. */
export function isHeld(status: PipelineStatus): boolean {
  return status === "RUNNING" || status === "PAUSE_REQUESTED" || status === "CANCEL_REQUESTED";
}

/** How the run should end, if somebody asked for it to end early. */
export function endAskedFor(status: PipelineStatus): "paused" | "cancelled" | undefined {
  if (status === "PAUSE_REQUESTED") return "paused";
  return status === "CANCEL_REQUESTED" ? "cancelled" : undefined;
}

export function isAtRest(status: PipelineStatus): status is RestingStatus {
  return RESTING_STATUSES.some((resting) => resting === status);
}
