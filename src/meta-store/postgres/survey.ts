import { z } from "zod";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Monitoring } from "../ports/monitoring.ts";
import { asking } from "./asking.ts";
import { decodeRow } from "./rows.ts";
import { ALIVE } from "./runners.ts";
import { CLAIMABLE } from "./statuses.ts";

const WAITING = `enabled AND status IN (${CLAIMABLE}) AND (not_before IS NULL OR not_before <= clock_timestamp())`;

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
           last_run.rows_rejected AS "lastRunRejected",
           CASE WHEN p.mode = 'follow' THEN jsonb_build_object(
             'lastRoundSeconds', extract(epoch FROM f.last_round_at)::float8,
             'lastCompareSeconds', extract(epoch FROM f.last_compare_at)::float8,
             'repaired', coalesce(f.repaired, 0)) END AS follow
      FROM (SELECT * FROM etl.etl_pipelines WHERE enabled ORDER BY name COLLATE "C" LIMIT $1) p
      LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id
      LEFT JOIN etl.follow_state f ON f.pipeline_id = p.id
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
    FROM (SELECT jsonb_build_object(${PIPELINE_STATUSES.map((status) => `'${status}', count(*) FILTER (WHERE status = '${status}')`).join(", ")}) AS by_status,
                 count(*) FILTER (WHERE enabled) AS enabled,
                 count(*) FILTER (WHERE ${WAITING}) AS waiting,
                 count(*) FILTER (WHERE enabled AND not_before > clock_timestamp()) AS held_up,
                 coalesce(extract(epoch FROM clock_timestamp() - min(greatest(run_requested_at, not_before))
                   FILTER (WHERE ${WAITING})), 0)::float8 AS oldest_waiting
            FROM etl.etl_pipelines) p,
         (SELECT count(*) FILTER (WHERE ${ALIVE}) AS alive,
                 count(*) FILTER (WHERE NOT ${ALIVE} AND r.stopped_at IS NULL
                                    AND r.last_seen_at > clock_timestamp() - interval '1 hour') AS lost
            FROM etl.etl_runners r) r`;

const vitals = z.object({
  name: z.string(),
  status: z.enum(PIPELINE_STATUSES),
  schedule: z.string().nullable(),
  changedAtSeconds: z.number(),
  watermark: z.string().nullable(),
  lastSuccessSeconds: z.number().nullable(),
  lastRunRejected: z.int().nullable(),
  follow: z
    .object({
      lastRoundSeconds: z.number().nullable(),
      lastCompareSeconds: z.number().nullable(),
      repaired: z.int(),
    })
    .nullable(),
});
const surveyRow = z.object({
  by_status: z.record(z.enum(PIPELINE_STATUSES), z.int()),
  enabled: z.int(),
  waiting: z.int(),
  held_up: z.int(),
  oldest_waiting: z.number(),
  alive: z.int(),
  lost: z.int(),
  pipelines: z.array(vitals),
});

export function monitoring(pool: Pool): Monitoring {
  return {
    survey: asking("survey the pipelines", async (mostPipelines) => {
      const { rows } = await pool.query(SURVEY, [mostPipelines]);
      const row = decodeRow(surveyRow, rows[0]);
      return {
        byStatus: new Map(PIPELINE_STATUSES.map((status) => [status, row.by_status[status]])),
        waiting: row.waiting,
        heldUp: row.held_up,
        oldestWaitingSeconds: row.oldest_waiting,
        runnersAlive: row.alive,
        runnersLost: row.lost,
        pipelines: row.pipelines,
        leftOut: row.enabled - row.pipelines.length,
      };
    }),
  };
}
