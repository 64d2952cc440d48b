import { z } from "zod";
import { pipelineConfigSchema } from "../../domain/pipeline.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Housekeeping } from "../ports/housekeeping.ts";
import { asking } from "./asking.ts";
import { pipelineId, rowOf } from "./rows.ts";

/**
 * Kept are, of each kind, the last success of each pipeline and everything since, which tell how fresh its target is,
 * and runs whose rejected rows still wait for somebody.
 */
const DELETE_OLD_RUNS = `
  DELETE FROM etl.etl_runs d WHERE d.id IN (
    SELECT r.id FROM etl.etl_runs r
     WHERE r.finished_at < clock_timestamp() - make_interval(days => $1)
       AND EXISTS (SELECT FROM etl.etl_runs s
                    WHERE s.pipeline_id = r.pipeline_id AND s.kind = r.kind AND s.status = 'SUCCESS'
                      AND s.started_at > r.started_at)
       AND NOT EXISTS (SELECT FROM etl.etl_rejects j WHERE j.run_id = r.id)
     ORDER BY r.finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)`;

/** The longer one has been waiting, the less often it is looked at: each look doubles its age, up to a day. */
const CLAIM = `
  UPDATE etl.etl_abandoned_targets a
     SET look_after = clock_timestamp()
           + greatest(interval '1 minute', least(interval '1 day', clock_timestamp() - a.abandoned_at))
   WHERE a.id = (SELECT d.id FROM etl.etl_abandoned_targets d WHERE d.look_after <= clock_timestamp()
                  ORDER BY d.look_after, d.id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING a.id, a.pipeline_id AS "pipelineId", a.target_table AS "targetTable", a.target_options AS options,
            EXISTS (SELECT FROM etl.etl_pipelines p WHERE p.target_table = a.target_table) AS "isShared",
            EXISTS (SELECT FROM etl.etl_pipelines p WHERE p.id = a.pipeline_id AND p.target_table = a.target_table) AS "isBack"`;

const abandonedRow = z.object({
  id: z.int(),
  pipelineId,
  targetTable: z.string(),
  options: pipelineConfigSchema.shape.target_options.unwrap(),
  isShared: z.boolean(),
  isBack: z.boolean(),
});

export function housekeeping(pool: Pool): Housekeeping {
  return {
    deleteOldRuns: asking("delete old runs", async (days, limit) => {
      const { rowCount } = await pool.query(DELETE_OLD_RUNS, [days, limit]);
      return rowCount ?? 0;
    }),

    claimAbandonedTarget: asking("look for abandoned targets", async () =>
      rowOf(abandonedRow, await pool.query(CLAIM)),
    ),

    settleAbandonedTarget: asking("settle an abandoned target", async (id, lookAfter) => {
      if (lookAfter === null) await pool.query("DELETE FROM etl.etl_abandoned_targets WHERE id = $1", [id]);
      else await pool.query("UPDATE etl.etl_abandoned_targets SET look_after = $2 WHERE id = $1", [id, lookAfter]);
    }),
  };
}
