import { levelsFrom } from "../../domain/log-level.ts";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import { LAST_LINES_AFTER_MS, type NewRunLogLine, type RunLogLine } from "../../domain/run-log.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunLogPage, RunLogRequest, RunLogStore } from "../ports/runs.ts";
import { asking } from "./asking.ts";
import { invalidPageMark } from "./page-mark.ts";
import { runNotFound } from "./runs.ts";

/** In one statement, in the order of the lines. A pipeline may be deleted while the last lines of its run wait. */
async function appendRunLog(pool: Pool, lines: readonly NewRunLogLine[]): Promise<void> {
  await pool.query(
    `INSERT INTO etl.etl_run_logs (run_id, at, level, message, fields)
     SELECT line.run_id, line.at, line.level, line.message, line.fields
       FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::json[]) WITH ORDINALITY
              AS line (run_id, at, level, message, fields, place)
      WHERE EXISTS (SELECT FROM etl.etl_runs r WHERE r.id = line.run_id)
      ORDER BY line.place`,
    [
      lines.map(({ runId }) => runId),
      lines.map(({ at }) => at),
      lines.map(({ level }) => level),
      lines.map(({ message }) => message),
      lines.map(({ fields }) => fields),
    ],
  );
}

/** Oldest first. The page mark is the id of the last line. */
async function readRunLog(
  pool: Pool,
  id: PipelineId,
  runId: string,
  { limit, after = "0", level }: RunLogRequest,
): Promise<RunLogPage> {
  if (!/^\d{1,18}$/.test(after)) throw invalidPageMark();
  // Asked before the lines are read: what comes last is then among them.
  const state = await stateOf(pool, id, runId);
  const { rows } = await pool.query(
    `SELECT id, at, level, message, fields FROM etl.etl_run_logs
      WHERE run_id = $1 AND id > $2 AND level = ANY ($3) ORDER BY id LIMIT $4`,
    [runId, after, levelsFrom(level ?? "debug"), limit + 1],
  );
  const items = rows.slice(0, limit) as RunLogLine[];
  return { items, next: rows.length > limit ? String(items.at(-1)?.id) : null, ...state };
}

async function stateOf(pool: Pool, id: PipelineId, runId: string): Promise<Pick<RunLogPage, "run_status" | "over">> {
  const { rows } = isPipelineId(runId)
    ? await pool.query(
        `SELECT status AS run_status,
                coalesce(finished_at < clock_timestamp() - make_interval(secs => $3::float8 / 1000), false) AS over
           FROM etl.etl_runs WHERE pipeline_id = $1 AND id = $2`,
        [id, runId, LAST_LINES_AFTER_MS],
      )
    : { rows: [] };
  if (rows[0] === undefined) throw runNotFound(runId);
  return rows[0] as Pick<RunLogPage, "run_status" | "over">;
}

export function runLogs(pool: Pool): RunLogStore {
  return {
    append: asking("keep the log of a run", (lines) => appendRunLog(pool, lines)),
    read: asking("read the log of a run", (id, runId, page) => readRunLog(pool, id, runId, page)),
  };
}
