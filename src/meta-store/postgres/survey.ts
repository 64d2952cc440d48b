import { PIPELINE_STATUSES, type PipelineStatus } from "../../domain/pipeline-status.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Monitoring, PipelineVitals, Survey } from "../ports/monitoring.ts";
import { asking } from "./asking.ts";
import { ALIVE } from "./runners.ts";

const CLAIMABLE = "enabled AND status = 'RUN_REQUESTED' AND (not_before IS NULL OR not_before <= clock_timestamp())";

/**
 * One statement, because it is asked with every scrape. Each pipeline costs two steps in an index, however many runs it
 * has. Disabled pipelines are only counted: nobody expects anything of them.
 */
const SURVEY = `
  WITH shown AS (
    SELECT p.name, p.status,
           CASE WHEN p.schedule_error IS NULL THEN p.schedule_interval END AS schedule,
           extract(epoch FROM p.updated_at)::float8 AS "changedAtSeconds",
           CASE WHEN p.mode = 'incremental' AND s.watermark_fingerprint IS NOT NULL THEN s.last_processed_value END AS watermark,
           extract(epoch FROM success.finished_at)::float8 AS "lastSuccessSeconds",
           last_run.rows_rejected AS "lastRunRejected"
      FROM (SELECT * FROM etl.etl_pipelines WHERE enabled ORDER BY name COLLATE "C" LIMIT $1) p
      LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id
      LEFT JOIN LATERAL (
        SELECT r.finished_at FROM etl.etl_runs r
         WHERE r.pipeline_id = p.id AND r.status = 'SUCCESS' AND r.kind = 'load'
         ORDER BY r.started_at DESC LIMIT 1) success ON true
      LEFT JOIN LATERAL (
        SELECT r.rows_rejected FROM etl.etl_runs r
         WHERE r.pipeline_id = p.id AND r.kind = 'load' AND r.status <> 'RUNNING'
         ORDER BY r.started_at DESC, r.id DESC LIMIT 1) last_run ON true
  )
  SELECT p.*, r.*, (SELECT coalesce(jsonb_agg(shown ORDER BY shown.name), '[]') FROM shown) AS pipelines
    FROM (SELECT ${PIPELINE_STATUSES.map((status) => `count(*) FILTER (WHERE status = '${status}') AS "${status}"`).join(", ")},
                 count(*) FILTER (WHERE enabled) AS enabled,
                 count(*) FILTER (WHERE ${CLAIMABLE}) AS waiting,
                 count(*) FILTER (WHERE enabled AND not_before > clock_timestamp()) AS held_up,
                 coalesce(extract(epoch FROM clock_timestamp() - min(greatest(run_requested_at, not_before))
                   FILTER (WHERE ${CLAIMABLE})), 0)::float8 AS oldest_waiting
            FROM etl.etl_pipelines) p,
         (SELECT count(*) FILTER (WHERE ${ALIVE}) AS alive,
                 count(*) FILTER (WHERE NOT ${ALIVE} AND r.stopped_at IS NULL
                                    AND r.last_seen_at > clock_timestamp() - interval '1 hour') AS lost
            FROM etl.etl_runners r) r`;

async function survey(pool: Pool, mostPipelines: number): Promise<Survey> {
  const { rows } = await pool.query(SURVEY, [mostPipelines]);
  const [row] = rows;
  const pipelines = row.pipelines as PipelineVitals[];
  return {
    byStatus: new Map(PIPELINE_STATUSES.map((status): [PipelineStatus, number] => [status, row[status]])),
    waiting: row.waiting,
    heldUp: row.held_up,
    oldestWaitingSeconds: row.oldest_waiting,
    runnersAlive: row.alive,
    runnersLost: row.lost,
    pipelines,
    leftOut: row.enabled - pipelines.length,
  };
}

export function monitoring(pool: Pool): Monitoring {
  return {
    survey: asking("survey the pipelines", (mostPipelines) => survey(pool, mostPipelines)),
  };
}
