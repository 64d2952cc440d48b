import { z } from "zod";
import { isPipelineId } from "../../domain/pipeline.ts";
import { runSchema } from "../../domain/run.ts";
import type { ConnectionOptions, Pool } from "../../postgres/connection.ts";
import type { ChangeFeed } from "../ports/changes.ts";
import { asking } from "./asking.ts";
import { listen } from "./listen.ts";
import { pipelineRow } from "./pipeline-row.ts";
import { decodeRow, rowsOf } from "./rows.ts";
import { RUN_COLUMNS } from "./runs.ts";

/** More than this is read faster as lists. */
const MOST_CHANGES = 1000;

/**
 * A point is a transaction id before which every transaction has ended. It is taken before the rows are read, so
 * whatever it does not cover has a higher id, and is told again from there.
 */
const POINT = `
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS point,
         $1::xid8 <= pg_snapshot_xmax(pg_current_snapshot()) AS known`;

const PIPELINES = `
  SELECT p.id, p.name, p.status, p.enabled, p.run_request, p.config_version FROM etl.etl_pipelines p
   WHERE p.changed_xid >= $1::xid8 ORDER BY p.changed_xid LIMIT ${MOST_CHANGES + 1}`;

const RUNS = `
  SELECT ${RUN_COLUMNS} FROM etl.etl_runs r
   WHERE r.id IN (
     (SELECT id FROM etl.etl_runs WHERE status = 'RUNNING')
     UNION ALL
     (SELECT id FROM etl.etl_runs WHERE changed_xid >= $1::xid8 AND status <> 'RUNNING'
       ORDER BY changed_xid LIMIT ${MOST_CHANGES + 1}))
   ORDER BY r.started_at, r.id`;

/** `known` is null without a point to begin at. */
const pointRow = z.object({ point: z.string(), known: z.boolean().nullable() });
const watchedRow = pipelineRow.pick({
  id: true,
  name: true,
  status: true,
  enabled: true,
  run_request: true,
  config_version: true,
});

export function changeFeed(pool: Pool, connection: ConnectionOptions): ChangeFeed {
  return {
    onChange: asking("listen for changes", (changed) =>
      listen(connection, "vitrina_changes", (id) => changed(id !== null && isPipelineId(id) ? id : null)),
    ),

    since: asking("read what changed", async (since) => {
      const { rows } = await pool.query(POINT, [since]);
      const { point, known } = decodeRow(pointRow, rows[0]);
      const from = known === true ? since : null;
      const pipelines = rowsOf(watchedRow, await pool.query(PIPELINES, [from]));
      const runs = rowsOf(runSchema, await pool.query(RUNS, [from]));
      const complete = known !== false && pipelines.length <= MOST_CHANGES && runs.length <= MOST_CHANGES;
      return complete ? { point, complete, pipelines, runs } : { point, complete, pipelines: [], runs: [] };
    }),
  };
}
