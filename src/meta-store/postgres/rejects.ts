import { z } from "zod";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import { rejectSchema } from "../../domain/reject.ts";
import { shortenError } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { RejectStore } from "../ports/rejects.ts";
import { asking } from "./asking.ts";
import { pageOf } from "./pages.ts";
import { requestRun } from "./requests.ts";
import { rowOf, rowsOf } from "./rows.ts";

/** Of one pipeline; all, or those with these ids. */
const MEANT = "pipeline_id = $1 AND ($2::bigint[] IS NULL OR id = ANY ($2))";

const { id } = rejectSchema.shape;
const idRow = z.object({ id });
const retriedRow = z.object({ id, key: rejectSchema.shape.key.unwrap() });

export function rejectStore(pool: Pool): RejectStore {
  return {
    /** The page mark is the id of the last one. */
    list: asking("list the rejects", async (id, page) => {
      const { runId, limit } = page;
      if (runId !== undefined && !isPipelineId(runId)) return { items: [], next: null };
      const after = page.after !== undefined && /^\d{1,18}$/.test(page.after) ? page.after : null;
      const found = await pool.query(
        `SELECT id, run_id, CASE WHEN retry_requested_at IS NULL THEN 'OPEN' ELSE 'RETRY_REQUESTED' END AS state,
                row_key AS key, row, error_code, error, created_at
           FROM etl.etl_rejects
          WHERE pipeline_id = $1 AND ($2::bigint IS NULL OR id < $2) AND ($3::uuid IS NULL OR run_id = $3)
          ORDER BY id DESC LIMIT $4`,
        [id, after, runId ?? null, limit + 1],
      );
      return pageOf(rowsOf(rejectSchema, found), page, (reject) => String(reject.id));
    }),

    /**
     * In one transaction: a run that starts at once finds the marks, and what may not run is not marked. The pipeline is
     * locked before its rejects, as in the commit of a batch, so the two never wait for each other in a circle.
     */
    retry: asking("retry the rejects", (id, ids) =>
      inTransaction(pool, async (session) => {
        const { rows } = await session.query(`SELECT FROM etl.etl_rejects WHERE ${MEANT} LIMIT 1`, [id, ids ?? null]);
        if (rows.length === 0) return 0;
        await requestRun(session, id, "api");
        const { rowCount } = await session.query(
          `UPDATE etl.etl_rejects SET retry_requested_at = coalesce(retry_requested_at, clock_timestamp())
            WHERE ${MEANT}`,
          [id, ids ?? null],
        );
        return rowCount ?? 0;
      }),
    ),

    discard: asking("discard the rejects", async (id, ids) => {
      const { rowCount } = await pool.query(`DELETE FROM etl.etl_rejects WHERE ${MEANT}`, [id, ids ?? null]);
      return rowCount ?? 0;
    }),

    toRetry: asking("read the rejects", async (id, limit) => {
      const found = await pool.query(
        `SELECT id, coalesce(row_key, '{}') AS key FROM etl.etl_rejects
          WHERE pipeline_id = $1 AND retry_requested_at IS NOT NULL ORDER BY id LIMIT $2`,
        [id, limit],
      );
      return rowsOf(retriedRow, found);
    }),

    without: asking("read the rejects", async (id, column) => {
      const found = await pool.query(
        "SELECT id FROM etl.etl_rejects WHERE pipeline_id = $1 AND row ? $2 AND row ->> $2 IS NULL",
        [id, column],
      );
      return rowsOf(idRow, found).map((reject) => reject.id);
    }),

    ofKeys: asking("read the rejects", async (id, keys) => {
      const found = await pool.query(
        "SELECT id FROM etl.etl_rejects WHERE pipeline_id = $1 AND row_key IN (SELECT jsonb_array_elements($2::jsonb))",
        [id, JSON.stringify(keys)],
      );
      return rowsOf(idRow, found).map((reject) => reject.id);
    }),

    count: asking("count the rejects", async (id) => {
      const found = await pool.query("SELECT count(*) AS rejects FROM etl.etl_rejects WHERE pipeline_id = $1", [id]);
      return rowOf(z.object({ rejects: z.coerce.number() }), found)?.rejects ?? 0;
    }),

    giveUp: asking("keep the rejects", async (id, ids, { code, error }) => {
      await pool.query(
        `UPDATE etl.etl_rejects SET retry_requested_at = NULL, error_code = $3, error = $4
          WHERE pipeline_id = $1 AND id = ANY ($2::bigint[])`,
        [id, ids, code, shortenError(error)],
      );
    }),
  };
}

/**
 * A full load has read everything again, so what earlier loads could not write is either written or refused again. A
 * load that was interrupted consists of several runs: the rejects of all of them stay.
 */
export async function settleEarlierRejects(session: SqlSession, id: PipelineId): Promise<void> {
  await session.query(
    `DELETE FROM etl.etl_rejects j USING etl.etl_runs r
      WHERE j.pipeline_id = $1 AND r.id = j.run_id AND r.started_at < (
        SELECT max(began.started_at) FROM etl.etl_runs began
         WHERE began.pipeline_id = $1 AND began.kind = 'load' AND began.resumed = false)`,
    [id],
  );
}
