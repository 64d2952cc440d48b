/**
 * The status machine of a pipeline: the one table that the API and the runner both ask. The SQL that changes a status
 * takes the statuses it may change from here and updates by compare-and-set.
 */

export const PIPELINE_STATUSES = ["IDLE", "RUN_REQUESTED", "RUNNING", "PAUSE_REQUESTED", "PAUSED", "FAILED"] as const;
export type PipelineStatus = (typeof PIPELINE_STATUSES)[number];

/**
 * What can happen to a pipeline.
 * - `request_run`, `request_pause`: somebody asks, through the API, the CLI or the schedule.
 * - `pause_waiting`: the same request while the pipeline waits until trouble passes: no batch is under way.
 * - `claim`: a runner takes the pipeline.
 * - `succeed`, `pause`, `fail`: the runner that holds it ends its run.
 * - `hand_back`: the runner stops in an orderly way, or recovery takes the pipeline from a runner that is lost;
 *   the work goes on where the checkpoint is.
 */
export const PIPELINE_EVENTS = [
  "request_run",
  "request_pause",
  "pause_waiting",
  "claim",
  "succeed",
  "pause",
  "fail",
  "hand_back",
] as const;
export type PipelineEvent = (typeof PIPELINE_EVENTS)[number];

type Transitions = Partial<Record<PipelineStatus, PipelineStatus>>;

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
  pause_waiting: { RUN_REQUESTED: "PAUSED" },
  claim: { RUN_REQUESTED: "RUNNING" },
  succeed: { RUNNING: "IDLE" },
  pause: { PAUSE_REQUESTED: "PAUSED" },
  fail: { RUNNING: "FAILED", PAUSE_REQUESTED: "FAILED" },
  hand_back: { RUNNING: "RUN_REQUESTED", PAUSE_REQUESTED: "PAUSED" },
};

/** The status after the event, or `undefined` where the machine does not allow it. */
export function nextStatus(status: PipelineStatus, event: PipelineEvent): PipelineStatus | undefined {
  return TRANSITIONS[event][status];
}

/** The allowed changes of an event as two parallel lists, the form in which SQL takes them. */
export function transitionsOf(event: PipelineEvent): { from: PipelineStatus[]; to: PipelineStatus[] } {
  const allowed = PIPELINE_STATUSES.flatMap((from) => {
    const to = nextStatus(from, event);
    return to === undefined ? [] : [{ from, to }];
  });
  return { from: allowed.map(({ from }) => from), to: allowed.map(({ to }) => to) };
}

/** True while a runner holds the pipeline by a lease. */
export function isHeld(status: PipelineStatus): boolean {
  return status === "RUNNING" || status === "PAUSE_REQUESTED";
}

/** True when nothing is requested or under way: the pipeline stays like this until somebody, or its schedule, acts. */
export function isAtRest(status: PipelineStatus): boolean {
  return status === "IDLE" || status === "PAUSED" || status === "FAILED";
}
