import { z } from "zod";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import { MAX_LOSSES } from "../../domain/lease.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { RUN_KINDS } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RescuedRun } from "../ports/run-queue.ts";
import { pipelineId, rowsOf, runId } from "./rows.ts";
import { allowing, CLAIMABLE, statusAfter } from "./statuses.ts";

/**
 * The run of a lost runner is FAILED; its pipeline goes on by itself, unless the last runs were all lost before they
 * committed a single batch: then something in the pipeline kills the runners, and a person must look. A run that
 * somebody wanted to cancel is CANCELLED by this, and nothing goes on. A run that only reads begins again under its own
 * id, unless too many runners were lost over it.
 */
const RESCUE = `
  WITH expired AS (
    SELECT r.id,
           CASE WHEN r.lane = 'read' AND r.attempt < $1 THEN 'REQUESTED'
                WHEN r.lane = 'write' AND p.status IN (${allowing("cancel")}) THEN 'CANCELLED' ELSE 'FAILED' END AS status,
           CASE WHEN r.lane = 'read' THEN 'RUNNER_LOST_REPEATEDLY'
                WHEN pg_postmaster_start_time() > r.started_at THEN 'DATABASE_RESTARTED'
                WHEN r.runner_id = $3 THEN 'RUNNER_CUT_OFF' ELSE 'RUNNER_LOST' END AS code
      FROM etl.etl_runs r JOIN etl.etl_pipelines p ON p.id = r.pipeline_id
     WHERE r.status = 'RUNNING' AND r.lease_expires_at < clock_timestamp()
       FOR NO KEY UPDATE SKIP LOCKED
  ), lost AS (
    UPDATE etl.etl_runs r
       SET status = expired.status, lease_expires_at = NULL,
           attempt = r.attempt + CASE WHEN expired.status = 'REQUESTED' THEN 1 ELSE 0 END,
           finished_at = CASE WHEN expired.status <> 'REQUESTED' THEN clock_timestamp() END,
           error_code = CASE WHEN expired.status = 'FAILED' THEN expired.code END,
           error = CASE WHEN expired.status = 'FAILED' THEN $2::jsonb ->> expired.code END
      FROM expired WHERE r.id = expired.id
    RETURNING r.id, r.pipeline_id, r.kind, r.lane, r.status, r.batches, r.error_code
  ), judged AS (
    SELECT l.pipeline_id,
           l.batches = 0 AND l.status = 'FAILED' AND (
             SELECT count(*) FILTER (WHERE recent.error_code IN ('RUNNER_LOST', 'RUNNER_CUT_OFF', 'DATABASE_RESTARTED') AND recent.batches = 0)
               FROM (SELECT r.error_code, r.batches FROM etl.etl_runs r
                      WHERE r.pipeline_id = l.pipeline_id AND r.lane = 'write' AND r.id <> l.id
                      ORDER BY r.started_at DESC LIMIT $1 - 1) recent) = $1 - 1 AS hopeless
      FROM lost l WHERE l.lane = 'write'
  ), rescued AS (
    UPDATE etl.etl_pipelines p
       SET status = CASE WHEN judged.hopeless THEN ${statusAfter("fail")} ELSE ${statusAfter("hand_back")} END,
           failure_may_pass = p.failure_may_pass AND NOT judged.hopeless, run_id = NULL,
           run_requested_at = CASE WHEN ${statusAfter("hand_back")} IN (${CLAIMABLE}) THEN clock_timestamp() END,
           run_trigger = CASE WHEN ${statusAfter("hand_back")} IN (${CLAIMABLE}) THEN 'recovery' END
      FROM judged WHERE p.id = judged.pipeline_id AND p.status IN (${allowing("hand_back")})
    RETURNING p.id, p.status
  )
  SELECT p.id, p.name, coalesce(rescued.status, p.status) AS status, lost.id AS "runId", lost.kind, lost.error_code AS code
    FROM lost JOIN etl.etl_pipelines p ON p.id = lost.pipeline_id
    LEFT JOIN rescued ON rescued.id = p.id AND lost.lane = 'write'`;

const LOSS_CODES = [
  "RUNNER_LOST",
  "RUNNER_CUT_OFF",
  "RUNNER_LOST_REPEATEDLY",
  "DATABASE_RESTARTED",
] as const satisfies readonly ErrorCode[];

const LOSSES: Record<(typeof LOSS_CODES)[number], string> = {
  RUNNER_LOST:
    "No sign of life came from the runner until its lease ran out: it was killed, frozen, or cut off from the meta-store.",
  RUNNER_CUT_OFF:
    "The runner lives, but could not renew its lease in time: it was cut off from the meta-store, or stood still.",
  RUNNER_LOST_REPEATEDLY: "Every runner that began this run disappeared.",
  DATABASE_RESTARTED: "PostgreSQL, which keeps the meta-store, was restarted during the run.",
};

const rescuedRow = z.object({
  id: pipelineId,
  name: z.string(),
  status: z.enum(PIPELINE_STATUSES),
  runId,
  kind: z.enum(RUN_KINDS),
  code: z.enum(LOSS_CODES).nullable(),
});

export async function rescueExpired(pool: Pool, runnerId: string): Promise<RescuedRun[]> {
  return rowsOf(rescuedRow, await pool.query(RESCUE, [MAX_LOSSES, LOSSES, runnerId]));
}
