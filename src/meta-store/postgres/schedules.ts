import { z } from "zod";
import type { RunTrigger } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { ScheduleStore } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { decodeRow, pipelineId, rowOf, rowsOf } from "./rows.ts";
import { allowing, CLAIMABLE, statusAfter } from "./statuses.ts";

/** One look answers everything: what is due, what has no plan yet, how long to sleep, and what time it is. */
const UPCOMING = `
  SELECT clock.now, next_attempt.at AS "nextAttemptAt", s.id, s.name, s.what, s.schedule, s.due AS "nextRunAt"
    FROM (SELECT clock_timestamp() AS now) AS clock
   CROSS JOIN LATERAL (
      SELECT min(not_before) AS at FROM etl.etl_pipelines
       WHERE enabled AND status IN (${CLAIMABLE}) AND not_before > coalesce($2::timestamptz, '-infinity')) AS next_attempt
    LEFT JOIN LATERAL (
      (SELECT id, name, 'run' AS what, schedule_interval AS schedule, next_run_at AS due FROM etl.etl_pipelines
        WHERE enabled AND schedule_interval IS NOT NULL AND schedule_error IS NULL
        ORDER BY next_run_at NULLS FIRST, id LIMIT $1)
       UNION ALL
      (SELECT id, name, 'sweep', sweep, next_sweep_at FROM etl.etl_pipelines
        WHERE enabled AND sweep IS NOT NULL AND sweep_error IS NULL
        ORDER BY next_sweep_at NULLS FIRST, id LIMIT $1)
       ORDER BY due NULLS FIRST, id LIMIT $1) AS s ON true
   ORDER BY s.due NULLS FIRST, s.id`;

/** A row without a pipeline stands for the rest of the answer when there is no schedule. */
const clockRow = z.object({ now: z.date(), nextAttemptAt: z.date().nullable() });
const scheduleRow = z.object({
  id: pipelineId,
  name: z.string(),
  what: z.enum(["run", "sweep"]),
  schedule: z.string(),
  nextRunAt: z.date().nullable(),
});

const MAY_FIRE = `(status IN (${allowing("fire")}) OR (status IN (${allowing("fire_after_failure")}) AND failure_may_pass))`;

function requestIf(fires: string, trigger: RunTrigger): string {
  return `
         status = CASE WHEN ${fires} THEN coalesce(${statusAfter("fire")}, ${statusAfter("fire_after_failure")}) ELSE p.status END,
         run_requested_at = CASE WHEN ${fires} THEN clock_timestamp() ELSE p.run_requested_at END,
         run_trigger = CASE WHEN ${fires} THEN '${trigger}' ELSE p.run_trigger END`;
}

/**
 * Compare-and-set: whoever moves the due time on owns the tick. A pipeline that is idle starts, and one that
 * failed by trouble that may have passed: one that is busy has its run already, and any other that failed, or is paused,
 * waits for a person. A row that somebody holds is passed over instead of waited for, so that one pipeline never holds
 * up the schedules of the others.
 */
const ADVANCE_RUN = `
  WITH tick AS (
    SELECT id, ${MAY_FIRE} AND next_run_at <= clock_timestamp() AS fires
      FROM etl.etl_pipelines
     WHERE id = $1 AND enabled AND schedule_interval = $2 AND next_run_at IS NOT DISTINCT FROM $3::timestamptz
     FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE etl.etl_pipelines p
     SET next_run_at = $4, schedule_error = $5, ${requestIf("tick.fires", "schedule")}
    FROM tick WHERE p.id = tick.id
  RETURNING tick.fires`;

/** The same for a sweep, which is wanted from then on, whether it can start at once or not. */
const ADVANCE_SWEEP = `
  WITH tick AS (
    SELECT id, next_sweep_at <= clock_timestamp() AS due, ${MAY_FIRE} AND next_sweep_at <= clock_timestamp() AS fires
      FROM etl.etl_pipelines
     WHERE id = $1 AND enabled AND sweep = $2 AND next_sweep_at IS NOT DISTINCT FROM $3::timestamptz
     FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE etl.etl_pipelines p
     SET next_sweep_at = $4, sweep_error = $5,
         sweep_wanted_at = CASE WHEN tick.due THEN clock_timestamp() ELSE p.sweep_wanted_at END,
         ${requestIf("tick.fires", "sweep")}
    FROM tick WHERE p.id = tick.id
  RETURNING tick.fires`;

/** One that failed waits until its sweep is due again, or for a person. */
const REQUEST_SWEEPS = `
  WITH wanted AS (
    SELECT id FROM etl.etl_pipelines
     WHERE sweep_wanted_at IS NOT NULL AND enabled AND status IN (${allowing("fire")})
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE etl.etl_pipelines p SET ${requestIf("true", "sweep")} FROM wanted WHERE p.id = wanted.id`;

const advancedRow = z.object({ fires: z.boolean().nullable() });

export function scheduleStore(pool: Pool): ScheduleStore {
  return {
    upcoming: asking("read the schedules", async (limit, since) => {
      const { rows } = await pool.query(UPCOMING, [limit, since]);
      const schedules = rowsOf(scheduleRow, { rows: rows.filter(({ id }) => id !== null) });
      return { ...decodeRow(clockRow, rows[0]), schedules };
    }),

    advance: asking("advance the schedule", async ({ id, what, schedule, nextRunAt }, plan) => {
      const [next, error] = plan.kind === "next" ? [plan.nextRunAt, null] : [null, plan.error];
      const statement = what === "sweep" ? ADVANCE_SWEEP : ADVANCE_RUN;
      const advanced = rowOf(advancedRow, await pool.query(statement, [id, schedule, nextRunAt, next, error]));
      if (advanced === undefined) return "taken";
      return advanced.fires ? "fired" : "moved";
    }),

    requestSweeps: asking("request the sweeps", async () => {
      await pool.query(REQUEST_SWEEPS);
    }),
  };
}
