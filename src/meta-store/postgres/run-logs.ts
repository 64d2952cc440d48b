import { z } from "zod";
import { levelsFrom } from "../../domain/log-level.ts";
import { isPipelineId, type PipelineId } from "../../domain/pipeline.ts";
import { RUN_STATUSES } from "../../domain/run.ts";
import { LAST_LINES_AFTER_MS, runLogLineSchema } from "../../domain/run-log.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunLogPage, RunLogStore } from "../ports/runs.ts";
import { asking } from "./asking.ts";
import { invalidPageMark, pageOf } from "./pages.ts";
import { rowOf, rowsOf } from "./rows.ts";
import { runNotFound } from "./runs.ts";

/** In one statement, in the order of the lines. A pipeline may be deleted while the last lines of its run wait. */
const APPEND = `
  INSERT INTO etl.etl_run_logs (run_id, at, level, message, fields)
  SELECT line.run_id, line.at, line.level, line.message, line.fields
    FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::json[]) WITH ORDINALITY
           AS line (run_id, at, level, message, fields, place)
   WHERE EXISTS (SELECT FROM etl.etl_runs r WHERE r.id = line.run_id)
   ORDER BY line.place`;

export function runLogs(pool: Pool): RunLogStore {
  return {
    append: asking("keep the log of a run", async (lines) => {
      await pool.query(APPEND, [
        lines.map(({ runId }) => runId),
        lines.map(({ at }) => at),
        lines.map(({ level }) => level),
        lines.map(({ message }) => message),
        lines.map(({ fields }) => fields),
      ]);
    }),

    /** The page mark is the id of the last line. */
    read: asking("read the log of a run", async (id, runId, page) => {
      const { limit, after = "0", level = "debug" } = page;
      if (!/^\d{1,18}$/.test(after)) throw invalidPageMark();
      // Asked before the lines are read: what comes last is then among them.
      const state = await stateOf(pool, id, runId);
      const lines = await pool.query(
        `SELECT id, at, level, message, fields FROM etl.etl_run_logs
          WHERE run_id = $1 AND id > $2 AND level = ANY ($3) ORDER BY id LIMIT $4`,
        [runId, after, levelsFrom(level), limit + 1],
      );
      return { ...pageOf(rowsOf(runLogLineSchema, lines), page, (line) => String(line.id)), ...state };
    }),
  };
}

const stateRow = z.object({ run_status: z.enum(RUN_STATUSES), over: z.boolean() });

async function stateOf(pool: Pool, id: PipelineId, runId: string): Promise<Pick<RunLogPage, "run_status" | "over">> {
  const found = isPipelineId(runId)
    ? await pool.query(
        `SELECT status AS run_status,
                coalesce(finished_at < clock_timestamp() - make_interval(secs => $3::float8 / 1000), false) AS over
           FROM etl.etl_runs WHERE pipeline_id = $1 AND id = $2`,
        [id, runId, LAST_LINES_AFTER_MS],
      )
    : { rows: [] };
  const state = rowOf(stateRow, found);
  if (state === undefined) throw runNotFound(runId);
  return state;
}
