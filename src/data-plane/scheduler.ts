import { VitrinaError } from "../domain/error-catalogue.ts";
import { nextRunAt, parseSchedule } from "../domain/schedule.ts";
import type { ScheduledPipeline, SchedulePlan, ScheduleStore } from "../meta-store/ports/run-queue.ts";
import type { Log } from "../observability/log.ts";

/** How many schedules are checked at once; if all of them were due, the next check follows immediately. */
const SCHEDULES_PER_LOOK = 100;

/** Another runner was faster, or the row is locked: checking again at once would only spin. */
const LOOK_AGAIN_MS = 250;

export interface Look {
  /** When this was, by the meta-store's clock. */
  readonly now: Date;
  /** Until the next one is due, or a waiting one may be tried again; `Infinity` when nothing is planned. */
  readonly nextDueMs: number;
}

/**
 * Requests the run of each pipeline that is due, and plans those that have no due time yet. Any number of runners may
 * do so at once. `since`: when this was done before.
 */
export async function runSchedules(store: ScheduleStore, log: Log, since: Date | null): Promise<Look> {
  await store.requestSweeps();
  const { now, nextAttemptAt, schedules } = await store.upcoming(SCHEDULES_PER_LOOK, since);
  const due = schedules.filter(({ nextRunAt: at }) => at === null || at <= now);
  const waits = schedules.slice(due.length).map(({ nextRunAt: at }) => msUntil(at, now));
  if (nextAttemptAt !== null) waits.push(msUntil(nextAttemptAt, now));
  for (const pipeline of due) waits.push(await advance(store, pipeline, now, log));
  return { now, nextDueMs: due.length === SCHEDULES_PER_LOOK ? 0 : Math.min(...waits) };
}

/** Returns the milliseconds until this pipeline must be checked again. */
async function advance(store: ScheduleStore, pipeline: ScheduledPipeline, now: Date, log: Log): Promise<number> {
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id };
  const plan = planNext(pipeline, now);
  const outcome = await store.advance(pipeline, plan);
  if (outcome === "taken") return LOOK_AGAIN_MS;
  if (plan.kind === "refused") {
    log.warn({ ...ids, schedule: pipeline.schedule, reason: plan.error }, "schedule ignored until it is corrected");
    return Number.POSITIVE_INFINITY;
  }
  if (outcome === "fired")
    log.info(
      { ...ids, status: "RUN_REQUESTED", due: pipeline.nextRunAt, next: plan.nextRunAt },
      pipeline.what === "sweep" ? "sweep requested" : "scheduled run requested",
    );
  return msUntil(plan.nextRunAt, now);
}

/** Missed ticks collapse into the one that fires now; the rhythm stays that of the last due time. */
function planNext({ schedule, nextRunAt: lastDue }: ScheduledPipeline, now: Date): SchedulePlan {
  try {
    return { kind: "next", nextRunAt: nextRunAt(parseSchedule(schedule), now, lastDue ?? now) };
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    return { kind: "refused", error: error.message };
  }
}

function msUntil(due: Date | null, now: Date): number {
  return due === null ? 0 : Math.max(0, due.getTime() - now.getTime());
}
