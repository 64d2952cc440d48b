import { configFingerprint, type ScanPosition } from "../../domain/checkpoint.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import { isHeld, type PipelineStatus } from "../../domain/pipeline-status.ts";
import { isBalanced } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { NO_WATERMARK, type Watermark } from "../../domain/watermark.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { BatchCommit, BatchProgress, LeaseView } from "../ports/batch-commit.ts";
import type { Claim } from "../ports/run-queue.ts";
import type { PipelineState, StateStore } from "../ports/state.ts";
import { asking } from "./asking.ts";
import { leaseLost } from "./claims.ts";
import { getPipeline, lockPipeline } from "./pipelines.ts";

/** Tables that came with a dump of the whole database have other oids than before, and so has the meta-store itself. */
const HOME = "'etl.etl_state'::regclass::oid::text";
const KNOWN_MARK = `CASE WHEN target_mark ->> 'home' <> ${HOME} THEN target_mark - '{identity,storage}'::text[] ELSE target_mark END`;
const newMark = (place: string): string => `${place}::jsonb || jsonb_build_object('home', ${HOME})`;

async function getState(pool: Pool, id: PipelineId): Promise<PipelineState> {
  const { rows } = await pool.query(
    `SELECT last_processed_value, last_processed_id, watermark_fingerprint, candidate_value, candidate_id, candidate_at,
            safe_point, scan_position, batch_no, fingerprint, updated_at, ${KNOWN_MARK} AS target_mark, source_mark, target_ahead
       FROM etl.etl_state WHERE pipeline_id = $1`,
    [id],
  );
  const [row] = rows;
  if (row === undefined) {
    const nothing = { scanPosition: null, batchNo: 0, fingerprint: null, safePoint: null, updatedAt: null };
    return {
      ...nothing,
      targetMark: null,
      sourceMark: null,
      targetAhead: false,
      progress: NO_WATERMARK,
      watermark: NO_WATERMARK,
      watermarkFingerprint: null,
      candidate: null,
    };
  }
  const shown = { value: row.last_processed_value, id: row.last_processed_id };
  const candidate = { value: row.candidate_value, id: row.candidate_id, at: row.candidate_at };
  return {
    watermark: row.watermark_fingerprint === null ? NO_WATERMARK : shown,
    progress: shown,
    watermarkFingerprint: row.watermark_fingerprint,
    candidate: row.candidate_at === null ? null : candidate,
    safePoint: row.safe_point,
    scanPosition: row.scan_position,
    batchNo: row.batch_no,
    fingerprint: row.fingerprint,
    targetMark: row.target_mark,
    sourceMark: row.source_mark,
    targetAhead: row.target_ahead,
    updatedAt: row.updated_at,
  };
}

const NOTHING = `
  last_processed_value = NULL, last_processed_id = NULL, watermark_fingerprint = NULL, scan_position = NULL,
  fingerprint = NULL, safe_point = NULL, candidate_value = NULL, candidate_id = NULL, candidate_at = NULL,
  target_mark = NULL, source_mark = NULL`;

async function resetState(pool: Pool, id: PipelineId): Promise<void> {
  await changeState(pool, id, NOTHING);
}

/**
 * The unfinished load is given up: its position was reached by another query. Where the query is the same, it is the
 * target that a person takes for whole; where it is another one, that the rows before lack its new columns is all right.
 */
async function keepState(pool: Pool, id: PipelineId): Promise<void> {
  const fingerprint = configFingerprint(await getPipeline(pool, id));
  await changeState(
    pool,
    id,
    `target_mark = CASE WHEN watermark_fingerprint = $2 THEN NULL ELSE target_mark - 'columns' END, source_mark = NULL,
     last_processed_value = CASE WHEN watermark_fingerprint IS NOT NULL THEN last_processed_value END,
     last_processed_id = CASE WHEN watermark_fingerprint IS NOT NULL THEN last_processed_id END,
     watermark_fingerprint = $2, scan_position = NULL, fingerprint = NULL, safe_point = NULL`,
    fingerprint,
  );
}

/** The value is compared with its column by the run that starts there: only the source knows its types. */
async function setState(pool: Pool, id: PipelineId, { value, id: lastId }: Watermark): Promise<void> {
  const fingerprint = configFingerprint(await getPipeline(pool, id));
  await changeState(
    pool,
    id,
    `last_processed_value = $2, last_processed_id = $3, watermark_fingerprint = $4, scan_position = NULL,
     fingerprint = NULL, safe_point = NULL, candidate_value = NULL, candidate_id = NULL, candidate_at = NULL,
     target_mark = NULL, source_mark = NULL`,
    value,
    lastId,
    fingerprint,
  );
}

/**
 * A person has decided that this meta-store is the right one: from now on its claims come after everything that was
 * written to the target, by whomever.
 */
const COME_AFTER = `
  UPDATE etl.etl_pipelines p SET lease_epoch = p.lease_epoch + 1000000
    FROM etl.etl_state s WHERE s.pipeline_id = p.id AND p.id = $1 AND s.target_ahead`;

/** The lock on the pipeline keeps a runner from claiming it meanwhile. */
async function changeState(
  pool: Pool,
  id: PipelineId,
  assignments: string,
  ...values: (string | null)[]
): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { name, status } = await lockPipeline(client, id);
    if (isHeld(status)) {
      const detail = `${name} is ${status}: its state cannot change while a runner holds it.`;
      throw new VitrinaError("STATUS_CONFLICT", detail, {
        extra: { pipeline_status: status },
        hint: "Pause it first, or wait until its run has ended.",
      });
    }
    await client.query(COME_AFTER, [id]);
    // A pipeline that never ran has no state yet.
    await client.query("INSERT INTO etl.etl_state (pipeline_id) VALUES ($1) ON CONFLICT DO NOTHING", [id]);
    await client.query(
      `UPDATE etl.etl_state SET ${assignments}, target_ahead = false, updated_at = clock_timestamp() WHERE pipeline_id = $1`,
      [id, ...values],
    );
  });
}

const LEASE = `
  SELECT id, status, config_version, batch_size, max_rejects, max_delete_percent FROM etl.etl_pipelines
   WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3 AND lease_expires_at > clock_timestamp()
   FOR NO KEY UPDATE`;

/**
 * One statement, last in the batch's transaction. The lock on the lease is what makes it safe: between this check and
 * the commit nobody can take the pipeline over. Coming last, it holds that lock only for the moment of the commit, so
 * heartbeats and pause requests do not wait for the write.
 */
const RECORD = `
  WITH lease AS (${LEASE}), state AS (
    UPDATE etl.etl_state s
       SET scan_position = $4, fingerprint = $5, safe_point = $6, batch_no = s.batch_no + 1,
           target_mark = CASE WHEN $22 THEN s.target_mark || '{"filled": true}' ELSE s.target_mark END,
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
           rows_dropped = r.rows_dropped + $14, rows_added = r.rows_added + $15, bytes = r.bytes + $16,
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

export function batchCommit(pool: Pool, claim: Claim): BatchCommit {
  const lease = [claim.pipeline.id, claim.runnerId, claim.epoch];

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
    if (Number(row["states"]) !== 1 || Number(row["runs"]) !== 1) throw leaseLost(claim);
    return {
      status: row["status"] as PipelineStatus,
      batchSize: Number(row["batch_size"]),
      maxRejects: Number(row["max_rejects"]),
      maxDeletePercent: Number(row["max_delete_percent"]),
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
           UPDATE etl.etl_state s SET ${NOTHING}, updated_at = clock_timestamp()
             FROM lease WHERE s.pipeline_id = lease.id
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
  if (mode === "full") return { value: null, id: position.join(", ") };
  return { value: position[0] ?? null, id: position[1] ?? null };
}

function requireBalance({ counters }: BatchProgress): void {
  if (isBalanced(counters)) return;
  throw new VitrinaError("BATCH_UNBALANCED", `The batch does not add up: ${JSON.stringify(counters)}.`);
}

/** From $4 on, in the order of RECORD. */
function recordValues(claim: Claim, batch: BatchProgress): unknown[] {
  const { position, fingerprint, safePoint, expectedBatchNo, counters, effort, rejects, settledRejects, fillsTarget } =
    batch;
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
  ];
}

export function stateStore(pool: Pool): StateStore {
  return {
    get: asking("read the state", (id) => getState(pool, id)),
    reset: asking("reset the state", (id) => resetState(pool, id)),
    keep: asking("keep the state", (id) => keepState(pool, id)),
    set: asking("set the state", (id, watermark) => setState(pool, id, watermark)),
  };
}
