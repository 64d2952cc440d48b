import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { PipelineStatus } from "../../domain/pipeline-status.ts";
import { isBalanced } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { BatchCommit, BatchProgress, Claim, LeaseView, PipelineState } from "../meta-store.ts";
import { leaseLost } from "./claims.ts";

export async function getState(pool: Pool, id: PipelineId): Promise<PipelineState> {
  const { rows } = await pool.query(
    `SELECT last_processed_value, last_processed_id, scan_position, batch_no, fingerprint, updated_at
       FROM etl.etl_state WHERE pipeline_id = $1`,
    [id],
  );
  const row = rows[0] ?? {};
  return {
    lastProcessedValue: row.last_processed_value ?? null,
    lastProcessedId: row.last_processed_id ?? null,
    scanPosition: row.scan_position ?? null,
    batchNo: row.batch_no ?? 0,
    fingerprint: row.fingerprint ?? null,
    updatedAt: row.updated_at ?? null,
  };
}

/**
 * One statement, last in the batch's transaction. The lock on the lease is what makes it safe: between this check and
 * the commit nobody can take the pipeline over. Coming last, it holds that lock only for the moment of the commit, so
 * heartbeats and pause requests do not wait for the write.
 */
const RECORD = `
  WITH lease AS (
    SELECT id, status, batch_size FROM etl.etl_pipelines
     WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3 AND lease_expires_at > clock_timestamp()
     FOR NO KEY UPDATE
  ), state AS (
    UPDATE etl.etl_state s
       SET scan_position = $4, fingerprint = $5, batch_no = s.batch_no + 1, updated_at = clock_timestamp()
      FROM lease WHERE s.pipeline_id = lease.id AND s.batch_no = $6
    RETURNING s.pipeline_id
  ), run AS (
    UPDATE etl.etl_runs r
       SET batches = r.batches + 1,
           rows_read = r.rows_read + $8, rows_written = r.rows_written + $9, rows_unchanged = r.rows_unchanged + $10,
           rows_deduplicated = r.rows_deduplicated + $11, rows_rejected = r.rows_rejected + $12,
           rows_dropped = r.rows_dropped + $13
      FROM state WHERE r.id = $7
    RETURNING r.id
  )
  SELECT lease.status, lease.batch_size, (SELECT count(*) FROM state) AS states, (SELECT count(*) FROM run) AS runs
    FROM lease`;

export function batchCommit(claim: Claim): BatchCommit {
  return {
    async recordIn(transaction: SqlSession, progress: BatchProgress): Promise<LeaseView> {
      const { counters } = progress;
      if (!isBalanced(counters)) {
        throw new VitrinaError("BATCH_UNBALANCED", `The batch does not add up: ${JSON.stringify(counters)}.`);
      }
      const { rows } = await transaction.query(RECORD, [
        claim.pipeline.id,
        claim.runnerId,
        claim.epoch,
        progress.position,
        progress.fingerprint,
        progress.expectedBatchNo,
        claim.runId,
        counters.rows_read,
        counters.rows_written,
        counters.rows_unchanged,
        counters.rows_deduplicated,
        counters.rows_rejected,
        counters.rows_dropped,
      ]);
      const [row] = rows;
      if (row === undefined || Number(row["states"]) !== 1 || Number(row["runs"]) !== 1) throw leaseLost(claim);
      return { status: row["status"] as PipelineStatus, batchSize: Number(row["batch_size"]) };
    },
  };
}
