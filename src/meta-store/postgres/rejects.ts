import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import type { Reject } from "../../domain/reject.ts";
import { shortenError } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { Page } from "../ports/page.ts";
import type { RejectStore, RejectsPage, RejectToRetry } from "../ports/rejects.ts";
import type { RunFailure } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { requestRun } from "./requests.ts";

/** The page mark is the id of the last one. */
async function listRejects(pool: Pool, id: PipelineId, page: RejectsPage): Promise<Page<Reject>> {
  const { runId, limit } = page;
  if (runId !== undefined && !isPipelineId(runId)) return { items: [], next: null };
  const after = page.after !== undefined && /^\d{1,18}$/.test(page.after) ? page.after : null;
  const { rows } = await pool.query(
    `SELECT id, run_id, CASE WHEN retry_requested_at IS NULL THEN 'OPEN' ELSE 'RETRY_REQUESTED' END AS state,
            row_key AS key, row, error_code, error, created_at
       FROM etl.etl_rejects
      WHERE pipeline_id = $1 AND ($2::bigint IS NULL OR id < $2) AND ($3::uuid IS NULL OR run_id = $3)
      ORDER BY id DESC LIMIT $4`,
    [id, after, runId ?? null, limit + 1],
  );
  const items = rows.slice(0, limit) as Reject[];
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? String(last.id) : null };
}

/**
 * In one transaction: a run that starts at once finds the marks, and what may not run is not marked. The pipeline is
 * locked before its rejects, as in the commit of a batch, so the two never wait for each other in a circle.
 */
async function retryRejects(pool: Pool, id: PipelineId, ids: readonly number[] | undefined): Promise<number> {
  return inTransaction(pool, async (client) => {
    const meant = "FROM etl.etl_rejects WHERE pipeline_id = $1 AND ($2::bigint[] IS NULL OR id = ANY ($2))";
    const { rows } = await client.query(`SELECT EXISTS (SELECT ${meant}) AS found`, [id, ids ?? null]);
    if (rows[0].found !== true) return 0;
    await requestRun(client, id, "api");
    const { rowCount } = await client.query(
      `UPDATE etl.etl_rejects SET retry_requested_at = coalesce(retry_requested_at, clock_timestamp())
        WHERE id IN (SELECT id ${meant})`,
      [id, ids ?? null],
    );
    return rowCount ?? 0;
  });
}

async function discardRejects(pool: Pool, id: PipelineId, ids: readonly number[] | undefined): Promise<number> {
  const { rowCount } = await pool.query(
    "DELETE FROM etl.etl_rejects WHERE pipeline_id = $1 AND ($2::bigint[] IS NULL OR id = ANY ($2))",
    [id, ids ?? null],
  );
  return rowCount ?? 0;
}

async function rejectsToRetry(pool: Pool, id: PipelineId, limit: number): Promise<RejectToRetry[]> {
  const { rows } = await pool.query(
    `SELECT id, coalesce(row_key, '{}') AS key FROM etl.etl_rejects
      WHERE pipeline_id = $1 AND retry_requested_at IS NOT NULL ORDER BY id LIMIT $2`,
    [id, limit],
  );
  return rows as RejectToRetry[];
}

async function rejectsWithout(pool: Pool, id: PipelineId, column: string): Promise<number[]> {
  const { rows } = await pool.query(
    "SELECT id FROM etl.etl_rejects WHERE pipeline_id = $1 AND row ? $2 AND row ->> $2 IS NULL",
    [id, column],
  );
  return rows.map((row) => row.id as number);
}

async function giveUpRetry(
  pool: Pool,
  id: PipelineId,
  ids: readonly number[],
  { code, error }: RunFailure,
): Promise<void> {
  await pool.query(
    `UPDATE etl.etl_rejects SET retry_requested_at = NULL, error_code = $3, error = $4
      WHERE pipeline_id = $1 AND id = ANY ($2::bigint[])`,
    [id, ids, code, shortenError(error)],
  );
}

/**
 * A full load has read everything anew, so what earlier loads could not write is either written or refused again. A
 * load that was interrupted consists of several runs: the rejects of all of them stay.
 */
export async function settleEarlierRejects(session: SqlSession, id: PipelineId): Promise<void> {
  await session.query(
    `DELETE FROM etl.etl_rejects j USING etl.etl_runs r
      WHERE j.pipeline_id = $1 AND r.id = j.run_id AND r.started_at < (
        SELECT max(began.started_at) FROM etl.etl_runs began WHERE began.pipeline_id = $1 AND began.resumed = false)`,
    [id],
  );
}

export function rejectStore(pool: Pool): RejectStore {
  return {
    list: asking("list the rejects", (id, page) => listRejects(pool, id, page)),
    retry: asking("retry the rejects", (id, ids) => retryRejects(pool, id, ids)),
    discard: asking("discard the rejects", (id, ids) => discardRejects(pool, id, ids)),
    toRetry: asking("read the rejects", (id, limit) => rejectsToRetry(pool, id, limit)),
    without: asking("read the rejects", (id, column) => rejectsWithout(pool, id, column)),
    giveUp: asking("keep the rejects", (id, ids, failure) => giveUpRetry(pool, id, ids, failure)),
  };
}
