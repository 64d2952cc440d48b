import { registeredTaskSchema, runnerSchema } from "../../domain/runner.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunnerRegistry } from "../ports/runners.ts";
import { asking } from "./asking.ts";
import { rowsOf } from "./rows.ts";

/** Who joins clears away those that have not been seen for a week. */
const REGISTER = `
  WITH forgotten AS (DELETE FROM etl.etl_runners WHERE last_seen_at < clock_timestamp() - interval '7 days')
  INSERT INTO etl.etl_runners (id, hostname, pid, version, tasks, report_every_ms) VALUES ($1, $2, $3, $4, $5, $6)`;

/** Three reports may be missed, and a minute is never too long: a runner also waits for a meta-store that is away. */
export const ALIVE = `
  (r.stopped_at IS NULL
   AND r.last_seen_at > clock_timestamp() - greatest(interval '1 minute', 3 * r.report_every_ms * interval '1 millisecond'))`;

const LIST = `
  SELECT r.id, r.hostname, r.pid, r.version, r.started_at, r.last_seen_at, r.stopped_at, ${ALIVE} AS alive,
         coalesce((
           SELECT jsonb_agg(jsonb_build_object(
                    'pipeline_id', p.id, 'pipeline_name', p.name, 'status', p.status, 'run_id', run.id, 'kind', run.kind,
                    'lease_expires_at', to_char(run.lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
                  ORDER BY p.name, run.lane DESC)
             FROM etl.etl_runs run JOIN etl.etl_pipelines p ON p.id = run.pipeline_id
            WHERE run.status = 'RUNNING' AND run.runner_id = r.id), '[]') AS holds
    FROM etl.etl_runners r
   WHERE r.last_seen_at > clock_timestamp() - interval '1 day'
   ORDER BY alive DESC, r.started_at DESC, r.id`;

/** What living runners have registered. Where they differ, the one that started last tells. */
const LIST_TASKS = `
  SELECT t.name, t.language,
         (array_agg(t.description ORDER BY r.started_at DESC))[1] AS description,
         (array_agg(t.params ORDER BY r.started_at DESC))[1] AS params,
         array_agg(r.id::text ORDER BY r.started_at DESC) AS runners
    FROM etl.etl_runners r,
         jsonb_to_recordset(r.tasks) AS t (name text, language text, description text, params jsonb)
   WHERE ${ALIVE}
   GROUP BY t.name, t.language ORDER BY t.name COLLATE "C", t.language`;

export function runnerRegistry(pool: Pool): RunnerRegistry {
  return {
    register: asking(
      "register the runner",
      async ({ id, hostname, pid, version, tasks = [], reportEveryMs = 5000 }) => {
        await pool.query(REGISTER, [id, hostname, pid, version, JSON.stringify(tasks), reportEveryMs]);
      },
    ),

    list: asking("list the runners", async () => rowsOf(runnerSchema, await pool.query(LIST))),
    listTasks: asking("list the tasks", async () => rowsOf(registeredTaskSchema, await pool.query(LIST_TASKS))),

    markSeen: asking("report the runner alive", async (runnerId) => {
      await pool.query("UPDATE etl.etl_runners SET last_seen_at = clock_timestamp() WHERE id = $1", [runnerId]);
    }),

    markStopped: asking("report the runner stopped", async (runnerId) => {
      await pool.query(
        "UPDATE etl.etl_runners SET last_seen_at = clock_timestamp(), stopped_at = clock_timestamp() WHERE id = $1",
        [runnerId],
      );
    }),
  };
}
