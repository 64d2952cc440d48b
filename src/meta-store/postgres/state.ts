import { z } from "zod";
import { configFingerprint } from "../../domain/checkpoint.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import { sourceMarkSchema } from "../../domain/source-mark.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { targetMarkSchema } from "../../domain/target-mark.ts";
import { NO_WATERMARK } from "../../domain/watermark.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { PipelineState, StateStore } from "../ports/state.ts";
import { asking } from "./asking.ts";
import { getPipeline, lockPipeline, requireNotHeld } from "./pipelines.ts";
import { rowOf } from "./rows.ts";

/** Tables that came with a dump of the whole database have other oids than before, and so has the meta-store itself. */
const HOME = "'etl.etl_state'::regclass::oid::text";
const KNOWN_MARK = `CASE WHEN target_mark ->> 'home' <> ${HOME} THEN target_mark - '{identity,storage,columnIds}'::text[] ELSE target_mark END`;
export const newMark = (place: string): string => `${place}::jsonb || jsonb_build_object('home', ${HOME})`;

const text = z.string().nullable();
const stateRow = z.object({
  last_processed_value: text,
  last_processed_id: text,
  watermark_fingerprint: text,
  candidate_value: text,
  candidate_id: text,
  candidate_at: text,
  safe_point: text,
  scan_position: z.array(z.string()).nullable(),
  batch_no: z.int(),
  fingerprint: text,
  updated_at: z.date().nullable(),
  target_mark: targetMarkSchema.nullable(),
  source_mark: sourceMarkSchema.nullable(),
  target_ahead: z.boolean(),
});

/** Of a pipeline that never ran. */
const NO_STATE: PipelineState = {
  scanPosition: null,
  batchNo: 0,
  fingerprint: null,
  safePoint: null,
  updatedAt: null,
  targetMark: null,
  sourceMark: null,
  targetAhead: false,
  progress: NO_WATERMARK,
  watermark: NO_WATERMARK,
  watermarkFingerprint: null,
  candidate: null,
};

/** What forgets everything that a pipeline has reached. */
export const NOTHING_REACHED = `
  last_processed_value = NULL, last_processed_id = NULL, watermark_fingerprint = NULL, scan_position = NULL,
  fingerprint = NULL, safe_point = NULL, candidate_value = NULL, candidate_id = NULL, candidate_at = NULL,
  target_mark = NULL, source_mark = NULL`;

/** The same, of how far it has followed the changes of its source. */
export const NOTHING_FOLLOWED = "position = NULL, fingerprint = NULL, compare_position = NULL";

export function stateStore(pool: Pool): StateStore {
  return {
    get: asking("read the state", async (id) => {
      const found = await pool.query(
        `SELECT last_processed_value, last_processed_id, watermark_fingerprint, candidate_value, candidate_id, candidate_at,
                safe_point, scan_position, batch_no, fingerprint, updated_at, ${KNOWN_MARK} AS target_mark, source_mark,
                target_ahead
           FROM etl.etl_state WHERE pipeline_id = $1`,
        [id],
      );
      const row = rowOf(stateRow, found);
      if (row === undefined) return NO_STATE;
      const shown = { value: row.last_processed_value, id: row.last_processed_id };
      const { candidate_value: value, candidate_id, candidate_at: at } = row;
      return {
        watermark: row.watermark_fingerprint === null ? NO_WATERMARK : shown,
        progress: shown,
        watermarkFingerprint: row.watermark_fingerprint,
        candidate: at === null ? null : { value, id: candidate_id, at },
        safePoint: row.safe_point,
        scanPosition: row.scan_position,
        batchNo: row.batch_no,
        fingerprint: row.fingerprint,
        targetMark: row.target_mark,
        sourceMark: row.source_mark,
        targetAhead: row.target_ahead,
        updatedAt: row.updated_at,
      };
    }),

    reset: asking("reset the state", (id) =>
      inTransaction(pool, async (client) => {
        await changeState(client, id, NOTHING_REACHED);
        await client.query(`UPDATE etl.follow_state SET ${NOTHING_FOLLOWED} WHERE pipeline_id = $1`, [id]);
      }),
    ),

    /**
     * The unfinished load is given up: its position was reached by another query. Where the query is the same, it is the
     * target that a person takes for whole; where it is another one, that the rows before were
     * written by that, and lack its new columns, is all right.
     */
    keep: asking("keep the state", async (id) => {
      const pipeline = await getPipeline(pool, id);
      const fingerprint = configFingerprint(pipeline);
      await changeStateAlone(
        pool,
        id,
        `target_mark = CASE WHEN watermark_fingerprint = $2 OR target_mark ->> 'target' <> $3 THEN NULL
                            ELSE target_mark - '{columns,writtenBy}'::text[] END, source_mark = NULL,
         last_processed_value = CASE WHEN watermark_fingerprint IS NOT NULL THEN last_processed_value END,
         last_processed_id = CASE WHEN watermark_fingerprint IS NOT NULL THEN last_processed_id END,
         watermark_fingerprint = $2, scan_position = NULL, fingerprint = NULL, safe_point = NULL`,
        fingerprint,
        pipeline.target_table,
      );
    }),

    /** The value is compared with its column by the run that starts there: only the source knows its types. */
    set: asking("set the state", async (id, { value, id: lastId }) => {
      const fingerprint = configFingerprint(await getPipeline(pool, id));
      await changeStateAlone(
        pool,
        id,
        `last_processed_value = $2, last_processed_id = $3, watermark_fingerprint = $4, scan_position = NULL,
         fingerprint = NULL, safe_point = NULL, candidate_value = NULL, candidate_id = NULL, candidate_at = NULL,
         target_mark = NULL, source_mark = NULL`,
        value,
        lastId,
        fingerprint,
      );
    }),
  };
}

/**
 * A person has decided that this meta-store is the right one: from now on its claims come after everything that was
 * written to the target, by whomever.
 */
const COME_AFTER = `
  UPDATE etl.etl_pipelines p SET lease_epoch = p.lease_epoch + 1000000
    FROM etl.etl_state s WHERE s.pipeline_id = p.id AND p.id = $1 AND s.target_ahead`;

function changeStateAlone(pool: Pool, ...change: [PipelineId, string, ...(string | null)[]]): Promise<void> {
  return inTransaction(pool, (client) => changeState(client, ...change));
}

/** The lock on the pipeline keeps a runner from claiming it meanwhile. */
async function changeState(
  client: SqlSession,
  id: PipelineId,
  assignments: string,
  ...values: (string | null)[]
): Promise<void> {
  requireNotHeld(await lockPipeline(client, id), "its state cannot change");
  await client.query(COME_AFTER, [id]);
  // A pipeline that never ran has no state yet.
  await client.query("INSERT INTO etl.etl_state (pipeline_id) VALUES ($1) ON CONFLICT DO NOTHING", [id]);
  await client.query(
    `UPDATE etl.etl_state
        SET ${assignments}, target_ahead = false, updated_at = clock_timestamp(),
            decided_epoch = (SELECT lease_epoch FROM etl.etl_pipelines WHERE id = $1)
      WHERE pipeline_id = $1`,
    [id, ...values],
  );
}
