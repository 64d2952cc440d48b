import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { isPipelineId } from "../../domain/pipeline.ts";
import { type Reconcile, reconcileSchema, reconcileStatus, VERDICTS } from "../../domain/reconcile.ts";
import { RUN_STATUSES } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { ReconcileStore } from "../ports/reconciles.ts";
import type { Claim } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { leaseLost } from "./claims.ts";
import { pageOf } from "./pages.ts";
import { pipelineNotFound } from "./pipelines.ts";
import { rowOf, rowsOf } from "./rows.ts";

/** A reconcile is a run, told in its own words. Before a runner has it, it has neither begun nor a configuration. */
const COLUMNS = `
  r.id, r.pipeline_id, r.status, r.verdict, r.requested_by, r.requested_at, r.finished_at, r.runner_id,
  CASE WHEN r.runner_id IS NOT NULL THEN r.started_at END AS started_at,
  CASE WHEN r.runner_id IS NOT NULL THEN r.config_version END AS config_version,
  r.rows_read AS rows_compared, CASE WHEN r.status = 'SUCCESS' THEN r.report END AS report, r.error_code, r.error`;

const reconcileRow = reconcileSchema
  .extend({ status: z.enum(RUN_STATUSES), verdict: z.enum(VERDICTS).nullable() })
  .transform(({ verdict, status, ...row }): Reconcile => ({ ...row, status: reconcileStatus(status, verdict) }));

/** The update changes nothing: it only makes the statement return the one that is open already. */
const REQUEST = `
  INSERT INTO etl.etl_runs AS r (pipeline_id, kind, attempt, status, trigger, config_version, applied_version,
                                 lease_epoch, requested_by, requested_at)
  SELECT p.id, 'reconcile', 1, 'REQUESTED', 'api', p.config_version, p.config_version, 0, $2, clock_timestamp()
    FROM etl.etl_pipelines p WHERE p.id = $1
  ON CONFLICT (pipeline_id, lane) WHERE status IN ('REQUESTED', 'RUNNING') DO UPDATE SET requested_at = r.requested_at
  RETURNING ${COLUMNS}`;

/** Newest first. The page mark is the id of the last one, whose time the database looks up itself. */
const LIST = `
  SELECT ${COLUMNS} FROM etl.etl_runs r
   WHERE r.pipeline_id = $1 AND r.kind = 'reconcile'
     AND ($2::uuid IS NULL
          OR (r.started_at, r.id) < (SELECT l.started_at, l.id FROM etl.etl_runs l WHERE l.id = $2::uuid))
   ORDER BY r.started_at DESC, r.id DESC LIMIT $3`;

const GET = `SELECT ${COLUMNS} FROM etl.etl_runs r WHERE r.pipeline_id = $1 AND r.id = $2 AND r.kind = 'reconcile'`;

export function reconcileStore(pool: Pool): ReconcileStore {
  return {
    request: asking("request the reconcile", async (id, author) => {
      const reconcile = rowOf(reconcileRow, await pool.query(REQUEST, [id, author]));
      if (reconcile === undefined) throw pipelineNotFound(id);
      return reconcile;
    }),

    list: asking("list the reconciles", async (id, page) => {
      const after = page.after !== undefined && isPipelineId(page.after) ? page.after : null;
      const found = await pool.query(LIST, [id, after, page.limit + 1]);
      return pageOf(rowsOf(reconcileRow, found), page, (last) => last.id);
    }),

    get: asking("read the reconcile", async (id, reconcileId) => {
      const found = isPipelineId(reconcileId) ? await pool.query(GET, [id, reconcileId]) : { rows: [] };
      const reconcile = rowOf(reconcileRow, found);
      if (reconcile === undefined)
        throw new VitrinaError("RECONCILE_NOT_FOUND", `This pipeline has no reconcile "${reconcileId}".`);
      return reconcile;
    }),

    noteCompared: asking("note what was compared", (claim, rowsCompared) =>
      changeRun(pool, claim, "rows_read = $4", rowsCompared),
    ),

    keepFindings: asking("keep the findings", (claim, { verdict, report }) =>
      changeRun(pool, claim, "rows_read = $4, verdict = $5, report = $6", report.source.rows_read, verdict, report),
    ),
  };
}

const UNDER_LEASE = "id = $1 AND status = 'RUNNING' AND runner_id = $2 AND lease_epoch = $3";

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
