import { VitrinaError } from "../../domain/error-catalogue.ts";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import type { Run } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Page, PageRequest } from "../meta-store.ts";

const RUN_COLUMNS = `
  r.id, r.pipeline_id, r.attempt, r.status, r.trigger, r.config_version, r.runner_id, r.started_at, r.finished_at,
  r.rows_read, r.rows_written, r.rows_unchanged, r.rows_deduplicated, r.rows_rejected, r.rows_dropped, r.rows_added,
  r.rows_deleted, r.batches, r.data_path, r.strategy, r.bytes, r.read_ms, r.transform_ms, r.write_ms,
  round(r.rows_read / greatest(extract(epoch FROM coalesce(r.finished_at, clock_timestamp()) - r.started_at), 0.001))::int8
    AS rows_per_second, r.error_code, r.error`;

/** Newest first. The page mark is the id of the last run, whose start time the database looks up itself. */
export async function listRuns(pool: Pool, id: PipelineId, page: PageRequest): Promise<Page<Run>> {
  const after = page.after !== undefined && isPipelineId(page.after) ? page.after : null;
  const { rows } = await pool.query(
    `SELECT ${RUN_COLUMNS} FROM etl.etl_runs r
      WHERE r.pipeline_id = $1
        AND ($2::uuid IS NULL
             OR (r.started_at, r.id) < (SELECT l.started_at, l.id FROM etl.etl_runs l WHERE l.id = $2::uuid))
      ORDER BY r.started_at DESC, r.id DESC LIMIT $3`,
    [id, after, page.limit + 1],
  );
  const items = rows.slice(0, page.limit) as Run[];
  return { items, next: rows.length > page.limit ? (items.at(-1)?.id ?? null) : null };
}

export async function getRun(pool: Pool, id: PipelineId, runId: string): Promise<Run> {
  const { rows } = isPipelineId(runId)
    ? await pool.query(`SELECT ${RUN_COLUMNS} FROM etl.etl_runs r WHERE r.pipeline_id = $1 AND r.id = $2`, [id, runId])
    : { rows: [] };
  if (rows[0] === undefined) throw new VitrinaError("RUN_NOT_FOUND", `This pipeline has no run "${runId}".`);
  return rows[0] as Run;
}
