import { VitrinaError } from "../../domain/error-catalogue.ts";
import { isPipelineId } from "../../domain/pipeline.ts";
import { runSchema } from "../../domain/run.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunHistory } from "../ports/runs.ts";
import { asking } from "./asking.ts";
import { Conditions } from "./conditions.ts";
import { invalidPageMark, pageOf } from "./pages.ts";
import { rowOf, rowsOf } from "./rows.ts";

/** The columns of a run, for a query where `r` is the row of etl.etl_runs. */
export const RUN_COLUMNS = `
  r.id, r.pipeline_id, (SELECT p.name FROM etl.etl_pipelines p WHERE p.id = r.pipeline_id) AS pipeline_name,
  r.kind, r.run_request, r.attempt, r.status, r.trigger, r.config_version, r.applied_version, r.runner_id,
  r.started_at, r.finished_at,
  CASE WHEN r.status = 'REQUESTED' THEN 0
       ELSE round(extract(epoch FROM coalesce(r.finished_at, clock_timestamp()) - r.started_at) * 1000)::int8 END AS duration_ms,
  r.rows_read, r.rows_written, r.rows_unchanged, r.rows_deduplicated, r.rows_rejected, r.rows_dropped, r.rows_added,
  r.rows_deleted, r.batches, r.estimated_rows, r.data_path, r.strategy, r.bytes, r.read_ms, r.transform_ms, r.write_ms,
  round(r.rows_read / greatest(extract(epoch FROM coalesce(r.finished_at, clock_timestamp()) - r.started_at), 0.001))::int8
    AS rows_per_second, coalesce(r.resumed, false) AS resumed, r.notes, r.error_code, r.error`;

/** Where a run stands in the list: its microsecond and its id. */
const PAGE_MARK = "(extract(epoch FROM r.started_at) * 1000000)::int8 || '.' || r.id";

function parsePageMark(mark: string): [micros: string, id: string] {
  const [micros = "", id = "", ...more] = mark.split(".");
  if (!/^\d{1,16}$/.test(micros) || !isPipelineId(id) || more.length > 0) throw invalidPageMark();
  return [micros, id];
}

export function runHistory(pool: Pool): RunHistory {
  return {
    list: asking("list the runs", async (id, page, filter = {}) => {
      const conditions = new Conditions();
      conditions.addIfGiven(id ?? undefined, (value) => `r.pipeline_id = ${value}`);
      conditions.addIfGiven(filter.kind, (value) => `r.kind = ${value}`);
      conditions.addIfGiven(filter.lane, (value) => `r.lane = ${value}`);
      conditions.addIfGiven(filter.status, (value) => `r.status = ${value}`);
      conditions.addIfGiven(filter.trigger, (value) => `r.trigger = ${value}`);
      conditions.addIfGiven(filter.run_request, (value) => `r.run_request = ${value}`);
      conditions.addIfGiven(filter.started_after, (value) => `r.started_at > ${value}`);
      conditions.addIfGiven(filter.started_before, (value) => `r.started_at < ${value}`);
      if (page.after !== undefined) {
        conditions.add(
          (micros, last) =>
            `(r.started_at, r.id) < (timestamptz 'epoch' + ${micros}::float8 * interval '1 microsecond', ${last}::uuid)`,
          ...parsePageMark(page.after),
        );
      }
      const { rows } = await pool.query(
        `SELECT ${RUN_COLUMNS}, ${PAGE_MARK} AS page_mark FROM etl.etl_runs r ${conditions.where}
          ORDER BY r.started_at DESC, r.id DESC LIMIT ${conditions.place(page.limit + 1)}`,
        conditions.values,
      );
      const { items, next } = pageOf(rows, page, (last) => String(last["page_mark"]));
      return { items: rowsOf(runSchema, { rows: items }), next };
    }),

    get: asking("read the run", async (id, runId) => {
      const found = isPipelineId(runId)
        ? await pool.query(`SELECT ${RUN_COLUMNS} FROM etl.etl_runs r WHERE r.pipeline_id = $1 AND r.id = $2`, [
            id,
            runId,
          ])
        : { rows: [] };
      const run = rowOf(runSchema, found);
      if (run === undefined) throw runNotFound(runId);
      return run;
    }),
  };
}

export function runNotFound(runId: string): VitrinaError {
  return new VitrinaError("RUN_NOT_FOUND", `This pipeline has no run "${runId}".`);
}
