import type { Pool } from "../../postgres/connection.ts";
import type { AbandonedTarget, Housekeeping } from "../ports/housekeeping.ts";
import { asking } from "./asking.ts";

/** The longer one has been waiting, the less often it is looked at: each look doubles its age, up to a day. */
const CLAIM = `
  UPDATE etl.etl_abandoned_targets a
     SET look_after = clock_timestamp()
           + greatest(interval '1 minute', least(interval '1 day', clock_timestamp() - a.abandoned_at))
   WHERE a.id = (SELECT d.id FROM etl.etl_abandoned_targets d WHERE d.look_after <= clock_timestamp()
                  ORDER BY d.look_after, d.id LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING a.id, a.pipeline_id, a.target_table, a.target_options,
            (SELECT count(*) FROM etl.etl_pipelines p WHERE p.target_table = a.target_table) AS pipelines,
            EXISTS (SELECT FROM etl.etl_pipelines p WHERE p.id = a.pipeline_id AND p.target_table = a.target_table) AS back`;

async function claimAbandonedTarget(pool: Pool): Promise<AbandonedTarget | undefined> {
  const { rows } = await pool.query(CLAIM);
  const [row] = rows;
  if (row === undefined) return undefined;
  return {
    id: row.id,
    pipelineId: row.pipeline_id,
    targetTable: row.target_table,
    options: row.target_options,
    isShared: row.pipelines > 0,
    isBack: row.back,
  };
}

async function settleAbandonedTarget(pool: Pool, id: number, lookAfter: Date | null): Promise<void> {
  if (lookAfter === null) await pool.query("DELETE FROM etl.etl_abandoned_targets WHERE id = $1", [id]);
  else await pool.query("UPDATE etl.etl_abandoned_targets SET look_after = $2 WHERE id = $1", [id, lookAfter]);
}

/**
 * Kept are, of each kind, the last success of each pipeline and everything since, which tell how fresh its target is,
 * and runs whose rejected rows still wait for somebody.
 */
const DELETE_OLD = `
  DELETE FROM etl.etl_runs d WHERE d.id IN (
    SELECT r.id FROM etl.etl_runs r
     WHERE r.finished_at < clock_timestamp() - make_interval(days => $1)
       AND EXISTS (SELECT FROM etl.etl_runs s
                    WHERE s.pipeline_id = r.pipeline_id AND s.kind = r.kind AND s.status = 'SUCCESS' AND s.started_at > r.started_at)
       AND NOT EXISTS (SELECT FROM etl.etl_rejects j WHERE j.run_id = r.id)
     ORDER BY r.finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)`;

async function deleteOldRuns(pool: Pool, days: number, limit: number): Promise<number> {
  const { rowCount } = await pool.query(DELETE_OLD, [days, limit]);
  return rowCount ?? 0;
}

export function housekeeping(pool: Pool): Housekeeping {
  return {
    deleteOldRuns: asking("delete old runs", (days, limit) => deleteOldRuns(pool, days, limit)),
    claimAbandonedTarget: asking("look for abandoned targets", () => claimAbandonedTarget(pool)),
    settleAbandonedTarget: asking("settle an abandoned target", (id, lookAfter) =>
      settleAbandonedTarget(pool, id, lookAfter),
    ),
  };
}
