import type { RegisteredTask, RunnerView } from "../../domain/runner.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunnerInfo, RunnerRegistry } from "../ports/runners.ts";
import { asking } from "./asking.ts";

/** Who joins clears away those that have not been seen for a week. */
async function registerRunner(pool: Pool, runner: RunnerInfo): Promise<void> {
  await pool.query(
    `WITH forgotten AS (DELETE FROM etl.etl_runners WHERE last_seen_at < clock_timestamp() - interval '7 days')
     INSERT INTO etl.etl_runners (id, hostname, pid, version, tasks, report_every_ms) VALUES ($1, $2, $3, $4, $5, $6)`,
    [
      runner.id,
      runner.hostname,
      runner.pid,
      runner.version,
      JSON.stringify(runner.tasks ?? []),
      runner.reportEveryMs ?? 5000,
    ],
  );
}

async function markRunnerSeen(pool: Pool, runnerId: string): Promise<void> {
  await pool.query("UPDATE etl.etl_runners SET last_seen_at = clock_timestamp() WHERE id = $1", [runnerId]);
}

async function markRunnerStopped(pool: Pool, runnerId: string): Promise<void> {
  await pool.query(
    "UPDATE etl.etl_runners SET last_seen_at = clock_timestamp(), stopped_at = clock_timestamp() WHERE id = $1",
    [runnerId],
  );
}

/** Three reports may be missed, and a minute is never too long: a runner also waits for a meta-store that is away. */
export const ALIVE = `
  (r.stopped_at IS NULL
   AND r.last_seen_at > clock_timestamp() - greatest(interval '1 minute', 3 * r.report_every_ms * interval '1 millisecond'))`;

async function listRunners(pool: Pool): Promise<RunnerView[]> {
  const { rows } = await pool.query(
    `SELECT r.id, r.hostname, r.pid, r.version, r.started_at, r.last_seen_at, r.stopped_at, ${ALIVE} AS alive,
            coalesce((
              SELECT jsonb_agg(jsonb_build_object(
                       'pipeline_id', p.id, 'pipeline_name', p.name, 'status', p.status, 'run_id', run.id, 'kind', run.kind,
                       'lease_expires_at', to_char(run.lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
                     ORDER BY p.name, run.lane DESC)
                FROM etl.etl_runs run JOIN etl.etl_pipelines p ON p.id = run.pipeline_id
               WHERE run.status = 'RUNNING' AND run.runner_id = r.id), '[]') AS holds
       FROM etl.etl_runners r
      WHERE r.last_seen_at > clock_timestamp() - interval '1 day'
      ORDER BY alive DESC, r.started_at DESC, r.id`,
  );
  return rows as RunnerView[];
}

/** What living runners have registered. Where they differ, the one that started last tells. */
async function listTasks(pool: Pool): Promise<RegisteredTask[]> {
  const { rows } = await pool.query(
    `SELECT t.name, t.language,
            (array_agg(t.description ORDER BY r.started_at DESC))[1] AS description,
            (array_agg(t.params ORDER BY r.started_at DESC))[1] AS params,
            array_agg(r.id::text ORDER BY r.started_at DESC) AS runners
       FROM etl.etl_runners r,
            jsonb_to_recordset(r.tasks) AS t (name text, language text, description text, params jsonb)
      WHERE ${ALIVE}
      GROUP BY t.name, t.language ORDER BY t.name COLLATE "C", t.language`,
  );
  return rows as RegisteredTask[];
}

export function runnerRegistry(pool: Pool): RunnerRegistry {
  return {
    register: asking("register the runner", (runner) => registerRunner(pool, runner)),
    list: asking("list the runners", () => listRunners(pool)),
    listTasks: asking("list the tasks", () => listTasks(pool)),
    markSeen: asking("report the runner alive", (runnerId) => markRunnerSeen(pool, runnerId)),
    markStopped: asking("report the runner stopped", (runnerId) => markRunnerStopped(pool, runnerId)),
  };
}
