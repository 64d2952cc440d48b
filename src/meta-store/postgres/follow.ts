import { z } from "zod";
import { configFingerprint } from "../../domain/checkpoint.ts";
import { followPositionSchema, followSchema, sweepPositionSchema } from "../../domain/follow.ts";
import { targetMarkSchema, writtenOtherwise } from "../../domain/target-mark.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { FollowStore } from "../ports/follow.ts";
import { asking } from "./asking.ts";
import { PIPELINE_COLUMNS, pipelineRow } from "./pipeline-row.ts";
import { pipelineNotFound } from "./pipelines.ts";
import { pipelineId, rowOf, rowsOf } from "./rows.ts";
import { allowing, statusAfter } from "./statuses.ts";

const time = z.date().nullable();
const stateRow = z.object({
  position: followPositionSchema.nullable(),
  fingerprint: z.string().nullable(),
  comparePosition: followPositionSchema.nullable(),
  compareReason: z.string().nullable(),
  tables: z.array(z.string()),
  lastCompareAt: time,
  lastRoundAt: time,
  lastSweepAt: time,
  nextSweepAt: time,
  sweepWanted: z.boolean(),
  sweepNext: sweepPositionSchema.nullable(),
  repaired: z.coerce.number(),
  lastRepaired: z.coerce.number(),
  restingUntil: time,
});

const watchedRow = z
  .object({
    id: pipelineId,
    name: z.string(),
    source_type: z.string(),
    source_connection: z.string(),
    follow: followSchema,
    mayStart: z.boolean(),
    ifRecorded: z.boolean(),
    position: followPositionSchema,
    tables: z.array(z.string()),
  })
  .transform(({ follow, ...rest }) => ({ ...rest, checkEverySeconds: follow.check_every_seconds }));

const positionRow = z.object({
  pipelineId,
  position: followPositionSchema,
  tables: z.array(z.string()),
});

const outdatedRow = pipelineRow.extend({ fingerprint: z.string().nullable(), mark: targetMarkSchema.nullable() });

/** With the newest run that is about what the target has; `f` and `last` may be missing. */
const FOLLOWING = `
  etl.etl_pipelines p
  LEFT JOIN etl.follow_state f ON f.pipeline_id = p.id
  LEFT JOIN LATERAL (
    SELECT r.kind, r.status, r.config_version, r.error_code FROM etl.etl_runs r
     WHERE r.pipeline_id = p.id AND r.kind <> 'reconcile' ORDER BY r.started_at DESC, r.id DESC LIMIT 1) AS last ON true`;

/**
 * After everything was compared several times, one after the other. What lies in the future was written before the clock was
 * set back, and says nothing.
 */
const RESTING_UNTIL = `
  CASE WHEN f.compares > 1 AND f.last_compare_at <= clock_timestamp() THEN f.last_compare_at + make_interval(secs => least(60, 2 ^ least(f.compares, 6))) END`;

/**
 * After a failure that may have passed, a further change is reason enough to try again, but not every second. Nor is
 * everything compared every second, where a source gives reason for it again and again; another configuration counts at once.
 */
const mayStart = (failureMayPass: string): string => `
  p.enabled AND p.mode = 'follow'
  AND (coalesce(${RESTING_UNTIL} < clock_timestamp(), true) OR last.config_version < p.config_version)
  AND (
    p.status IN (${allowing("fire")})
    OR (p.status IN (${allowing("fire_after_failure")}) AND ${failureMayPass} AND NOT EXISTS (
          SELECT FROM etl.etl_runs r
           WHERE r.pipeline_id = p.id AND r.finished_at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp()))
    OR (p.status IN (${allowing("fire_after_failure")}) AND last.config_version < p.config_version))`;

const MAY_START = mayStart("p.failure_may_pass");

/**
 * The owner of a source puts this right, as at the end of work for which the triggers were switched off, or for which a table
 * was dropped and made again. He does not know of the pipelines, and nobody else needs to look at them.
 */
const NOT_RECORDED =
  "(NOT p.failure_may_pass AND last.error_code IN ('CHANGES_NOT_RECORDED', 'SOURCE_QUERY_FAILED', 'PERMISSION_DENIED'))";
const MAY_START_ON_CHANGE = mayStart(`(p.failure_may_pass OR ${NOT_RECORDED})`);

export function followStore(pool: Pool): FollowStore {
  return {
    get: asking("read how far the pipeline has followed", async (id) => {
      const found = await pool.query(
        `SELECT f.position, f.fingerprint, f.compare_position AS "comparePosition", f.compare_reason AS "compareReason",
                coalesce(f.tables, '{}') AS tables, f.last_compare_at AS "lastCompareAt", f.last_round_at AS "lastRoundAt",
                f.last_sweep_at AS "lastSweepAt", p.next_sweep_at AS "nextSweepAt",
                p.sweep_wanted_at IS NOT NULL AS "sweepWanted", f.sweep_next AS "sweepNext", coalesce(f.repaired, 0) AS repaired,
                coalesce(f.last_repaired, 0) AS "lastRepaired",
                CASE WHEN ${RESTING_UNTIL} > clock_timestamp() THEN ${RESTING_UNTIL} END AS "restingUntil"
           FROM etl.etl_pipelines p LEFT JOIN etl.follow_state f ON f.pipeline_id = p.id
          WHERE p.id = $1`,
        [id],
      );
      const state = rowOf(stateRow, found);
      if (state === undefined) throw pipelineNotFound(id);
      return state;
    }),

    watched: asking("read the pipelines that follow", async () => {
      const found = await pool.query(
        `SELECT p.id, p.name, p.source_type, p.source_connection, p.follow, f.position, f.tables,
                coalesce(${MAY_START_ON_CHANGE}, false) AS "mayStart",
                coalesce(p.status IN (${allowing("fire_after_failure")}) AND ${NOT_RECORDED}, false) AS "ifRecorded"
           FROM ${FOLLOWING}
          WHERE p.enabled AND p.mode = 'follow' AND f.position IS NOT NULL`,
      );
      return rowsOf(watchedRow, found);
    }),

    /**
     * What ran last with the configuration as it is has its fingerprint, unless it failed. One that has become again what it
     * was has it, too; then the mark tells that the target was written otherwise meanwhile.
     */
    outdated: asking("read the pipelines that have nothing to follow yet", async () => {
      const found = await pool.query(
        `SELECT ${PIPELINE_COLUMNS}, f.fingerprint, s.target_mark AS mark
           FROM ${FOLLOWING}
           LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id
          WHERE ${MAY_START}
            AND (f.position IS NULL OR last.config_version IS DISTINCT FROM p.config_version
                 OR last.status IS DISTINCT FROM 'SUCCESS')
            AND (last.config_version IS DISTINCT FROM p.config_version
                 OR (last.kind = 'load' AND last.status <> 'CANCELLED'))`,
      );
      return rowsOf(outdatedRow, found)
        .filter(({ fingerprint, mark, ...pipeline }) => {
          if (fingerprint !== configFingerprint(pipeline)) return true;
          return mark !== null && writtenOtherwise(mark, pipeline) !== undefined;
        })
        .map(({ id, name }) => ({ id, name }));
    }),

    positionsIn: asking("read where pipelines stand", async ({ source_type, source_connection }) => {
      const found = await pool.query(
        `SELECT f.pipeline_id AS "pipelineId", one.position, f.tables
           FROM etl.etl_pipelines p JOIN etl.follow_state f ON f.pipeline_id = p.id
          CROSS JOIN LATERAL (VALUES (f.position), (f.compare_position)) AS one (position)
          WHERE p.mode = 'follow' AND p.source_type = $1 AND p.source_connection = $2 AND one.position IS NOT NULL`,
        [source_type, source_connection],
      );
      return rowsOf(positionRow, found);
    }),

    /** A row that somebody holds is passed over: whoever asks comes again soon. */
    requestOnChange: asking("request the runs", async (ids) => {
      const requested = await pool.query(
        `WITH changed AS (
           SELECT p.id FROM ${FOLLOWING}
            WHERE p.id = ANY ($1::uuid[]) AND ${MAY_START_ON_CHANGE}
              FOR NO KEY UPDATE OF p SKIP LOCKED
         )
         UPDATE etl.etl_pipelines p
            SET status = coalesce(${statusAfter("fire")}, ${statusAfter("fire_after_failure")}),
                run_requested_at = clock_timestamp(), run_trigger = 'change'
           FROM changed WHERE p.id = changed.id
         RETURNING p.id`,
        [ids],
      );
      return rowsOf(z.object({ id: pipelineId }), requested).map(({ id }) => id);
    }),
  };
}
