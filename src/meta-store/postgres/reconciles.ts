import { VitrinaError } from "../../domain/error-catalogue.ts";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import { type Reconcile, reconcileStatus, type Verdict } from "../../domain/reconcile.ts";
import type { RunStatus } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Page, PageRequest } from "../ports/page.ts";
import type { ReconcileFindings, ReconcileStore } from "../ports/reconciles.ts";
import type { Claim } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { leaseLost } from "./claims.ts";
import { pipelineNotFound } from "./pipelines.ts";

/** A reconcile is a run, told in its own words. Before a runner has it, it has neither begun nor a configuration. */
const COLUMNS = `
  r.id, r.pipeline_id, r.status, r.verdict, r.requested_by, r.requested_at, r.finished_at, r.runner_id,
  CASE WHEN r.runner_id IS NOT NULL THEN r.started_at END AS started_at,
  CASE WHEN r.runner_id IS NOT NULL THEN r.config_version END AS config_version,
  r.rows_read AS rows_compared, CASE WHEN r.status = 'SUCCESS' THEN r.report END AS report, r.error_code, r.error`;

type ReconcileRow = Omit<Reconcile, "status"> & { readonly status: RunStatus; readonly verdict: Verdict | null };

function reconcileFromRow({ verdict, status, ...row }: ReconcileRow): Reconcile {
  return { ...row, status: reconcileStatus(status, verdict) };
}

/** The update changes nothing: it only makes the statement return the one that is open already. */
async function requestReconcile(pool: Pool, id: PipelineId, author: string): Promise<Reconcile> {
  const { rows } = await pool.query(
    `INSERT INTO etl.etl_runs AS r (pipeline_id, kind, attempt, status, trigger, config_version, applied_version,
                                    lease_epoch, requested_by, requested_at)
     SELECT p.id, 'reconcile', 1, 'REQUESTED', 'api', p.config_version, p.config_version, 0, $2, clock_timestamp()
       FROM etl.etl_pipelines p WHERE p.id = $1
     ON CONFLICT (pipeline_id, lane) WHERE status IN ('REQUESTED', 'RUNNING') DO UPDATE SET requested_at = r.requested_at
     RETURNING ${COLUMNS}`,
    [id, author],
  );
  if (rows[0] === undefined) throw pipelineNotFound(id);
  return reconcileFromRow(rows[0] as ReconcileRow);
}

/** Newest first. The page mark is the id of the last one, whose time the database looks up itself. */
async function listReconciles(pool: Pool, id: PipelineId, page: PageRequest): Promise<Page<Reconcile>> {
  const after = page.after !== undefined && isPipelineId(page.after) ? page.after : null;
  const { rows } = await pool.query(
    `SELECT ${COLUMNS} FROM etl.etl_runs r
      WHERE r.pipeline_id = $1 AND r.kind = 'reconcile'
        AND ($2::uuid IS NULL
             OR (r.started_at, r.id) < (SELECT l.started_at, l.id FROM etl.etl_runs l WHERE l.id = $2::uuid))
      ORDER BY r.started_at DESC, r.id DESC LIMIT $3`,
    [id, after, page.limit + 1],
  );
  const items = rows.slice(0, page.limit).map((row) => reconcileFromRow(row as ReconcileRow));
  return { items, next: rows.length > page.limit ? (items.at(-1)?.id ?? null) : null };
}

async function getReconcile(pool: Pool, id: PipelineId, reconcileId: string): Promise<Reconcile> {
  const { rows } = isPipelineId(reconcileId)
    ? await pool.query(
        `SELECT ${COLUMNS} FROM etl.etl_runs r WHERE r.pipeline_id = $1 AND r.id = $2 AND r.kind = 'reconcile'`,
        [id, reconcileId],
      )
    : { rows: [] };
  if (rows[0] === undefined)
    throw new VitrinaError("RECONCILE_NOT_FOUND", `This pipeline has no reconcile "${reconcileId}".`);
  return reconcileFromRow(rows[0] as ReconcileRow);
}

const UNDER_LEASE = "id = $1 AND status = 'RUNNING' AND runner_id = $2 AND lease_epoch = $3";

async function noteCompared(pool: Pool, claim: Claim, rowsCompared: number): Promise<void> {
  await changeRun(pool, claim, "rows_read = $4", rowsCompared);
}

async function keepFindings(pool: Pool, claim: Claim, { verdict, report }: ReconcileFindings): Promise<void> {
  await changeRun(pool, claim, "rows_read = $4, verdict = $5, report = $6", report.source.rows_read, verdict, report);
}

/** A runner that is late changes nothing: the epoch has grown since. */
async function changeRun(pool: Pool, claim: Claim, assignments: string, ...values: unknown[]): Promise<void> {
  const { rowCount } = await pool.query(`UPDATE etl.etl_runs SET ${assignments} WHERE ${UNDER_LEASE}`, [
    claim.runId,
    claim.runnerId,
    claim.epoch,
    ...values,
  ]);
  if (rowCount !== 1) throw leaseLost(claim);
}

export function reconcileStore(pool: Pool): ReconcileStore {
  return {
    request: asking("request the reconcile", (id, author) => requestReconcile(pool, id, author)),
    list: asking("list the reconciles", (id, page) => listReconciles(pool, id, page)),
    get: asking("read the reconcile", (id, reconcileId) => getReconcile(pool, id, reconcileId)),
    noteCompared: asking("note what was compared", (claim, rows) => noteCompared(pool, claim, rows)),
    keepFindings: asking("keep the findings", (claim, findings) => keepFindings(pool, claim, findings)),
  };
}
