import { z } from "zod";
import type { ScanPosition } from "../../domain/checkpoint.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline } from "../../domain/pipeline.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { isBalanced } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { NO_WATERMARK, type Watermark } from "../../domain/watermark.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { BatchCommit, BatchProgress, LeaseView } from "../ports/batch-commit.ts";
import type { Claim } from "../ports/run-queue.ts";
import { leaseLost } from "./claims.ts";
import { settleEarlierRejects } from "./rejects.ts";
import { decodeRow } from "./rows.ts";
import { NOTHING_FOLLOWED, NOTHING_REACHED, newMark } from "./state.ts";

/** The epoch is also asked of the pipeline: whoever raises it there ends every claim from before. */
const LEASE = `
  SELECT p.id, p.status, p.config_version, p.batch_size, p.max_rejects, p.max_delete_percent
    FROM etl.etl_runs r JOIN etl.etl_pipelines p ON p.run_id = r.id
   WHERE r.id = $1 AND r.runner_id = $2 AND r.lease_epoch = $3 AND p.lease_epoch = $3
     AND r.lease_expires_at > clock_timestamp()
   FOR NO KEY UPDATE OF r`;

/**
 * One statement, last in the batch's transaction. The lock on the lease is what makes it safe: between this check and
 * the commit nobody can take the pipeline over. Coming last, it holds that lock only for the moment of the commit, so
 * heartbeats and pause requests do not wait for the write.
 */
const RECORD = `
  WITH lease AS (${LEASE}), state AS (
    UPDATE etl.etl_state s
       SET scan_position = $4, fingerprint = $5, safe_point = $6, batch_no = s.batch_no + 1,
           target_mark = CASE WHEN $22 THEN s.target_mark || '{"filled": true}'
                              WHEN $25::bigint > 0 THEN s.target_mark || '{"filled": false}' ELSE s.target_mark END,
           last_processed_value = CASE WHEN s.watermark_fingerprint IS NULL THEN $23 ELSE s.last_processed_value END,
           last_processed_id = CASE WHEN s.watermark_fingerprint IS NULL THEN $24 ELSE s.last_processed_id END,
           updated_at = clock_timestamp()
      FROM lease WHERE s.pipeline_id = lease.id AND s.batch_no = $7
    RETURNING s.pipeline_id
  ), run AS (
    UPDATE etl.etl_runs r
       SET batches = r.batches + 1, applied_version = lease.config_version,
           rows_read = r.rows_read + $9, rows_written = r.rows_written + $10, rows_unchanged = r.rows_unchanged + $11,
           rows_deduplicated = r.rows_deduplicated + $12, rows_rejected = r.rows_rejected + $13,
           rows_dropped = r.rows_dropped + $14, rows_added = r.rows_added + $15,
           rows_deleted = r.rows_deleted + $25, bytes = r.bytes + $16,
           read_ms = r.read_ms + $17, transform_ms = r.transform_ms + $18, write_ms = r.write_ms + $19
      FROM state JOIN lease ON lease.id = state.pipeline_id WHERE r.id = $8
    RETURNING r.id, r.pipeline_id
  ), rejected AS (
    INSERT INTO etl.etl_rejects (pipeline_id, run_id, row_key, row, error_code, error)
    SELECT run.pipeline_id, run.id, x.key, x.row, x.code, x.error
      FROM run, jsonb_to_recordset($20::jsonb) AS x (key jsonb, row jsonb, code text, error text)
  ), settled AS (
    DELETE FROM etl.etl_rejects j USING run WHERE j.pipeline_id = run.pipeline_id AND j.id = ANY ($21::bigint[])
  ), met_again AS (
    DELETE FROM etl.etl_rejects j USING run WHERE j.pipeline_id = run.pipeline_id AND j.of_failed_run
  )
  SELECT lease.status, lease.batch_size, lease.max_rejects, lease.max_delete_percent,
         (SELECT count(*) FROM state) AS states, (SELECT count(*) FROM run) AS runs
    FROM lease`;

/** The session of a data path gives every value as text, that of the meta-store numbers. */
const number = z.coerce.number();
const recordedRow = z.object({
  status: z.enum(PIPELINE_STATUSES),
  batch_size: number,
  max_rejects: number,
  max_delete_percent: number,
  states: number,
  runs: number,
});

/** Instead of what an earlier run kept. */
const KEEP_REJECTS = `
  WITH lease AS (${LEASE}), earlier AS (
    DELETE FROM etl.etl_rejects j USING lease WHERE j.pipeline_id = lease.id AND j.of_failed_run
  ), kept AS (
    INSERT INTO etl.etl_rejects (pipeline_id, run_id, row_key, row, error_code, error, of_failed_run)
    SELECT lease.id, $4, x.key, x.row, x.code, x.error, true
      FROM lease, jsonb_to_recordset($5::jsonb) AS x (key jsonb, row jsonb, code text, error text)
  )
  SELECT id FROM lease`;

const END_LOAD = `
  WITH lease AS (${LEASE}), state AS (
    UPDATE etl.etl_state s SET scan_position = NULL, fingerprint = NULL, updated_at = clock_timestamp()
      FROM lease WHERE s.pipeline_id = lease.id
  ), met_again AS (
    DELETE FROM etl.etl_rejects j USING lease WHERE j.pipeline_id = lease.id AND j.of_failed_run
  ), run AS (UPDATE etl.etl_runs r SET rows_deleted = r.rows_deleted + $5 FROM lease WHERE r.id = $4)
  SELECT id FROM lease`;

const NOTE_COMPARE = `
  WITH lease AS (${LEASE}), noted AS (
    INSERT INTO etl.follow_state (pipeline_id, compare_position, compare_reason, tables)
    SELECT id, $4::jsonb, $5::text, $6::text[] FROM lease
    ON CONFLICT (pipeline_id) DO UPDATE
      SET compare_position = excluded.compare_position, compare_reason = excluded.compare_reason, tables = excluded.tables
  )
  SELECT id FROM lease`;

const MOVE_FOLLOW_POSITION = `
  WITH lease AS (${LEASE}), moved AS (
    INSERT INTO etl.follow_state AS f
      (pipeline_id, position, fingerprint, tables, last_round_at, last_compare_at, compares)
    SELECT id, $4::jsonb, $5::text, $6::text[], clock_timestamp(), CASE WHEN $8::boolean THEN clock_timestamp() END,
           CASE WHEN $8 THEN 1 ELSE 0 END FROM lease
    ON CONFLICT (pipeline_id) DO UPDATE
      SET position = excluded.position, fingerprint = excluded.fingerprint, tables = excluded.tables,
          last_round_at = excluded.last_round_at, last_compare_at = coalesce(excluded.last_compare_at, f.last_compare_at),
          compare_position = CASE WHEN $8 THEN NULL ELSE f.compare_position END,
          compares = CASE WHEN $8 THEN f.compares + 1 ELSE 0 END,
          sweep_next = CASE WHEN $8 THEN NULL ELSE f.sweep_next END
  ), state AS (
    UPDATE etl.etl_state s
       SET scan_position = NULL, fingerprint = NULL, safe_point = NULL, target_mark = ${newMark("$7")},
           updated_at = clock_timestamp()
      FROM lease WHERE s.pipeline_id = lease.id
  ), met_again AS (
    DELETE FROM etl.etl_rejects j USING lease WHERE j.pipeline_id = lease.id AND j.of_failed_run
  )
  SELECT id FROM lease`;

const NOTE_SWEPT = `
  WITH lease AS (${LEASE}), done AS (
    UPDATE etl.etl_pipelines p SET sweep_wanted_at = NULL FROM lease WHERE p.id = lease.id
  ), noted AS (
    INSERT INTO etl.follow_state AS f (pipeline_id, last_sweep_at, repaired, last_repaired, sweep_next)
    SELECT id, clock_timestamp(), $4::bigint, $4::bigint, $5::jsonb FROM lease
    ON CONFLICT (pipeline_id) DO UPDATE
      SET last_sweep_at = excluded.last_sweep_at, repaired = f.repaired + excluded.repaired,
          last_repaired = excluded.last_repaired, sweep_next = excluded.sweep_next
  )
  SELECT id FROM lease`;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one method for each operation of the port, mostly SQL.
export function batchCommit(pool: Pool, claim: Claim): BatchCommit {
  const lease = [claim.runId, claim.runnerId, claim.epoch];

  /** Runs a statement that begins with `WITH lease` and must find it. */
  async function underLease(
    session: SqlSession,
    statement: string,
    values: unknown[],
  ): Promise<Record<string, unknown>> {
    const { rows } = await session.query(statement, [...lease, ...values]);
    if (rows[0] === undefined) throw leaseLost(claim);
    return rows[0];
  }

  const recordIn = async (session: SqlSession, progress: BatchProgress): Promise<LeaseView> => {
    requireBalance(progress);
    const row = await underLease(session, RECORD, recordValues(claim, progress));
    const { states, runs, ...lease } = decodeRow(recordedRow, row);
    if (states !== 1 || runs !== 1) throw leaseLost(claim);
    return {
      status: lease.status,
      batchSize: lease.batch_size,
      maxRejects: lease.max_rejects,
      maxDeletePercent: lease.max_delete_percent,
    };
  };
  const endLoadIn = async (session: SqlSession, rowsDeleted: number): Promise<void> => {
    await underLease(session, END_LOAD, [claim.runId, rowsDeleted]);
  };

  return {
    recordIn,
    record: (progress) => recordIn(pool, progress),
    endLoadIn,
    endLoad: (rowsDeleted) => endLoadIn(pool, rowsDeleted),

    async catchUp({ batchNo, position, fingerprint, safePoint }) {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s
              SET batch_no = $4, scan_position = $5, fingerprint = $6, safe_point = $7, updated_at = clock_timestamp()
             FROM lease WHERE s.pipeline_id = lease.id AND s.batch_no < $4
         )
         SELECT id FROM lease`,
        [batchNo, position, fingerprint, safePoint],
      );
    },

    async fenceIn(transaction) {
      await underLease(transaction, LEASE, []);
    },
    async fence() {
      await underLease(pool, LEASE, []);
    },
    async underLease(change) {
      await inTransaction(pool, async (client) => {
        await underLease(client, LEASE, []);
        await change(client);
      });
    },

    async keepRejects(rejects) {
      await underLease(pool, KEEP_REJECTS, [claim.runId, JSON.stringify(rejects)]);
    },

    async noteTarget(mark) {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s SET target_mark = ${newMark("$4")} FROM lease WHERE s.pipeline_id = lease.id
         )
         SELECT id FROM lease`,
        [mark],
      );
    },
    async noteSource(mark) {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s SET source_mark = $4 FROM lease WHERE s.pipeline_id = lease.id
         )
         SELECT id FROM lease`,
        [mark],
      );
    },
    async noteTargetAhead() {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s SET target_ahead = true FROM lease WHERE s.pipeline_id = lease.id
         )
         SELECT id FROM lease`,
        [],
      );
    },
    async startOver() {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s SET ${NOTHING_REACHED}, updated_at = clock_timestamp()
             FROM lease WHERE s.pipeline_id = lease.id
         ), follow AS (
           UPDATE etl.follow_state f SET ${NOTHING_FOLLOWED} FROM lease WHERE f.pipeline_id = lease.id
         )
         SELECT id FROM lease`,
        [],
      );
    },

    async moveWatermark({ watermark, candidate }, fingerprint, mark) {
      await underLease(
        pool,
        `WITH lease AS (${LEASE}), state AS (
           UPDATE etl.etl_state s
              SET last_processed_value = $4, last_processed_id = $5,
                  watermark_fingerprint = CASE WHEN $4::text IS NULL AND $6::text IS NULL THEN NULL ELSE $9 END,
                  candidate_value = $6, candidate_id = $7, candidate_at = $8,
                  scan_position = NULL, fingerprint = NULL, safe_point = NULL, target_mark = ${newMark("$10")},
                  updated_at = clock_timestamp()
             FROM lease WHERE s.pipeline_id = lease.id
         ), met_again AS (
           DELETE FROM etl.etl_rejects j USING lease WHERE j.pipeline_id = lease.id AND j.of_failed_run
         )
         SELECT id FROM lease`,
        [
          watermark.value,
          watermark.id,
          candidate?.value ?? null,
          candidate?.id ?? null,
          candidate?.at ?? null,
          fingerprint,
          mark,
        ],
      );
    },

    async noteCompareBegins(position, reason, tables) {
      await underLease(pool, NOTE_COMPARE, [position, reason, tables]);
    },
    async moveFollowPosition({ position, fingerprint, tables, mark, comparedEverything }) {
      await inTransaction(pool, async (client) => {
        await underLease(client, MOVE_FOLLOW_POSITION, [position, fingerprint, tables, mark, comparedEverything]);
        if (comparedEverything) await settleEarlierRejects(client, claim.pipeline.id);
      });
    },
    async noteSwept(repaired, next) {
      await inTransaction(pool, async (client) => {
        await underLease(client, NOTE_SWEPT, [repaired, next]);
        // There a sweep is a full load; in follow mode it writes only if it must.
        if (claim.pipeline.mode === "incremental") await settleEarlierRejects(client, claim.pipeline.id);
      });
    },

    async describeRun({ dataPath, strategy, estimatedRows, resumed, notes = [] }) {
      await pool.query(
        `UPDATE etl.etl_runs SET data_path = $2, strategy = $3, estimated_rows = $4, resumed = $5, notes = $6
          WHERE id = $1`,
        [claim.runId, dataPath, strategy, estimatedRows, resumed, notes],
      );
    },
  };
}

/** For people who look at a load that has no watermark yet: a full load has a key, and no cursor. */
function progressOf(mode: Pipeline["mode"], position: ScanPosition | null): Watermark {
  if (position === null) return NO_WATERMARK;
  if (mode !== "incremental") return { value: null, id: position.join(", ") };
  return { value: position[0] ?? null, id: position[1] ?? null };
}

function requireBalance({ counters }: BatchProgress): void {
  if (isBalanced(counters)) return;
  throw new VitrinaError("BATCH_UNBALANCED", `The batch does not add up: ${JSON.stringify(counters)}.`);
}

/** From $4 on, in the order of RECORD. */
function recordValues(claim: Claim, batch: BatchProgress): unknown[] {
  const { position, fingerprint, safePoint, expectedBatchNo, counters, effort, rejects } = batch;
  const { settledRejects, fillsTarget, rowsDeleted } = batch;
  const progress = progressOf(claim.pipeline.mode, position);
  return [
    position,
    position === null ? null : fingerprint,
    safePoint,
    expectedBatchNo,
    claim.runId,
    counters.rows_read,
    counters.rows_written,
    counters.rows_unchanged,
    counters.rows_deduplicated,
    counters.rows_rejected,
    counters.rows_dropped,
    counters.rows_added,
    effort.bytes,
    Math.round(effort.read_ms),
    Math.round(effort.transform_ms),
    Math.round(effort.write_ms),
    JSON.stringify(rejects),
    settledRejects,
    fillsTarget,
    progress.value,
    progress.id,
    rowsDeleted,
  ];
}
