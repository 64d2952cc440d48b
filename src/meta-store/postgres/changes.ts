import type { Changes, WatchedPipeline } from "../../domain/change.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { Run } from "../../domain/run.ts";
import type { ConnectionOptions, Pool } from "../../postgres/connection.ts";
import type { ChangeFeed } from "../ports/changes.ts";
import { asking } from "./asking.ts";
import { listen } from "./listen.ts";
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

/** `null`: nothing but the point, and the runs under way. */
async function changesSince(pool: Pool, since: string | null): Promise<Changes> {
  const { rows: points } = await pool.query(POINT, [since]);
  const { point, known } = points[0] as { point: string; known: boolean | null };
  const from = known === true ? since : null;
  const pipelines = (await pool.query(PIPELINES, [from])).rows as WatchedPipeline[];
  const runs = (await pool.query(RUNS, [from])).rows as Run[];
  const complete = known !== false && pipelines.length <= MOST_CHANGES && runs.length <= MOST_CHANGES;
  return complete ? { point, complete, pipelines, runs } : { point, complete, pipelines: [], runs: [] };
}

export function changeFeed(pool: Pool, connection: ConnectionOptions): ChangeFeed {
  return {
    onChange: asking("listen for changes", (changed) =>
      listen(connection, "vitrina_changes", (id) => changed(id as PipelineId | null)),
    ),
    since: asking("read what changed", (point) => changesSince(pool, point)),
  };
}
