import { VitrinaError } from "../../domain/error-catalogue.ts";
import { MAX_LOSSES } from "../../domain/lease.ts";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import type { Reconcile } from "../../domain/reconcile.ts";
import { shortenError } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Page, PageRequest } from "../ports/page.ts";
import type { ReconcileClaim, ReconcileOutcome, ReconcileStore } from "../ports/reconciles.ts";
import { asking } from "./asking.ts";
import { PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";

const COLUMNS = `
  r.id, r.pipeline_id, r.status, r.requested_by, r.requested_at, r.started_at, r.finished_at, r.config_version,
  r.runner_id, r.rows_compared, r.report, r.error_code, r.error`;

/** The update changes nothing: it only makes the statement return the one that is open already. */
async function requestReconcile(pool: Pool, id: PipelineId, author: string): Promise<Reconcile> {
  const { rows } = await pool.query(
    `INSERT INTO etl.etl_reconciles AS r (pipeline_id, requested_by) VALUES ($1, $2)
     ON CONFLICT (pipeline_id) WHERE status IN ('WAITING', 'RUNNING') DO UPDATE SET requested_at = r.requested_at
     RETURNING ${COLUMNS}`,
    [id, author],
  );
  return rows[0] as Reconcile;
}

/** Newest first. The page mark is the id of the last one, whose time the database looks up itself. */
async function listReconciles(pool: Pool, id: PipelineId, page: PageRequest): Promise<Page<Reconcile>> {
  const after = page.after !== undefined && isPipelineId(page.after) ? page.after : null;
  const { rows } = await pool.query(
    `SELECT ${COLUMNS} FROM etl.etl_reconciles r
      WHERE r.pipeline_id = $1
        AND ($2::uuid IS NULL
             OR (r.requested_at, r.id) < (SELECT l.requested_at, l.id FROM etl.etl_reconciles l WHERE l.id = $2::uuid))
      ORDER BY r.requested_at DESC, r.id DESC LIMIT $3`,
    [id, after, page.limit + 1],
  );
  const items = rows.slice(0, page.limit) as Reconcile[];
  return { items, next: rows.length > page.limit ? (items.at(-1)?.id ?? null) : null };
}

async function getReconcile(pool: Pool, id: PipelineId, reconcileId: string): Promise<Reconcile> {
  const { rows } = isPipelineId(reconcileId)
    ? await pool.query(`SELECT ${COLUMNS} FROM etl.etl_reconciles r WHERE r.pipeline_id = $1 AND r.id = $2`, [
        id,
        reconcileId,
      ])
    : { rows: [] };
  if (rows[0] === undefined)
    throw new VitrinaError("RECONCILE_NOT_FOUND", `This pipeline has no reconcile "${reconcileId}".`);
  return rows[0] as Reconcile;
}

/** Runners keep disappearing over it, so it is more likely the cause than the victim. */
const GIVE_UP = `
  UPDATE etl.etl_reconciles
     SET status = 'FAILED', finished_at = clock_timestamp(), lease_expires_at = NULL, losses = losses + 1,
         error_code = 'RUNNER_LOST_REPEATEDLY', error = 'Every runner that began this reconcile disappeared.'
   WHERE status = 'RUNNING' AND lease_expires_at < clock_timestamp() AND losses + 1 >= $1`;

/** One whose runner disappeared begins anew: nothing of it is worth keeping. */
const CLAIM = `
  WITH candidate AS (
    SELECT id FROM etl.etl_reconciles
     WHERE status = 'WAITING' OR (status = 'RUNNING' AND lease_expires_at < clock_timestamp())
     ORDER BY requested_at, id
     LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
  ), r AS (
    UPDATE etl.etl_reconciles AS taken
       SET status = 'RUNNING', runner_id = $1, lease_epoch = taken.lease_epoch + 1,
           lease_expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000),
           losses = taken.losses + CASE WHEN taken.status = 'RUNNING' THEN 1 ELSE 0 END,
           started_at = coalesce(taken.started_at, clock_timestamp()), rows_compared = 0, config_version = p.config_version
      FROM candidate, etl.etl_pipelines p WHERE taken.id = candidate.id AND p.id = taken.pipeline_id
    RETURNING taken.*
  )
  SELECT ${PIPELINE_COLUMNS}, r.id AS reconcile_id, r.runner_id, r.lease_epoch
    FROM r JOIN etl.etl_pipelines p ON p.id = r.pipeline_id`;

async function claimReconcile(pool: Pool, runnerId: string, leaseMs: number): Promise<ReconcileClaim | undefined> {
  await pool.query(GIVE_UP, [MAX_LOSSES]);
  const { rows } = await pool.query(CLAIM, [runnerId, leaseMs]);
  const [row] = rows;
  if (row === undefined) return undefined;
  return { id: row.reconcile_id, pipeline: pipelineFromRow(row), runnerId: row.runner_id, epoch: row.lease_epoch };
}

async function extendReconcile(
  pool: Pool,
  { id, runnerId, epoch }: ReconcileClaim,
  leaseMs: number,
  rowsCompared: number,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE etl.etl_reconciles
        SET lease_expires_at = clock_timestamp() + make_interval(secs => $4::float8 / 1000), rows_compared = $5
      WHERE id = $1 AND status = 'RUNNING' AND runner_id = $2 AND lease_epoch = $3`,
    [id, runnerId, epoch, leaseMs, rowsCompared],
  );
  return rowCount === 1;
}

async function finishReconcile(
  pool: Pool,
  { id, runnerId, epoch }: ReconcileClaim,
  outcome: ReconcileOutcome,
): Promise<boolean> {
  const report = "report" in outcome ? outcome.report : null;
  const failure = "failure" in outcome ? outcome.failure : null;
  const { rowCount } = await pool.query(
    `UPDATE etl.etl_reconciles
        SET status = $4, report = $5, error_code = $6, error = $7, lease_expires_at = NULL,
            finished_at = CASE WHEN $4 <> 'WAITING' THEN clock_timestamp() END,
            rows_compared = coalesce($8, rows_compared)
      WHERE id = $1 AND status = 'RUNNING' AND runner_id = $2 AND lease_epoch = $3`,
    [
      id,
      runnerId,
      epoch,
      outcome.status,
      report,
      failure?.code ?? null,
      failure === null ? null : shortenError(failure.error),
      report?.source.rows_read ?? null,
    ],
  );
  return rowCount === 1;
}

export function reconcileStore(pool: Pool): ReconcileStore {
  return {
    request: asking("request the reconcile", (id, author) => requestReconcile(pool, id, author)),
    list: asking("list the reconciles", (id, page) => listReconciles(pool, id, page)),
    get: asking("read the reconcile", (id, reconcileId) => getReconcile(pool, id, reconcileId)),
    claim: asking("claim a reconcile", (runnerId, leaseMs) => claimReconcile(pool, runnerId, leaseMs)),
    extend: asking("extend the reconcile", (claim, leaseMs, rowsCompared) =>
      extendReconcile(pool, claim, leaseMs, rowsCompared),
    ),
    finish: asking("finish the reconcile", (claim, outcome) => finishReconcile(pool, claim, outcome)),
  };
}
