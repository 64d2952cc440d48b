import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import { nextStatus, type PipelineEvent, transitionsOf } from "../../domain/pipeline-status.ts";
import type { RunTrigger } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunRequests } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";
import { getPipeline } from "./pipelines.ts";

/**
 * Of the status that the row has when it is locked. A join with the changes would be made before, and find nothing
 * when another request changes the status meanwhile.
 */
const NEXT_STATUS = "($3::text[])[array_position($2::text[], p.status)]";

export async function requestRun(session: SqlSession, id: PipelineId, trigger: RunTrigger): Promise<Pipeline> {
  const { from, to } = transitionsOf("request_run");
  const { rows } = await session.query(
    `UPDATE etl.etl_pipelines p
        SET status = ${NEXT_STATUS},
            run_requested_at = CASE WHEN p.status = ${NEXT_STATUS} THEN p.run_requested_at ELSE clock_timestamp() END,
            run_trigger = CASE WHEN p.status = ${NEXT_STATUS} THEN p.run_trigger ELSE $4 END,
            not_before = NULL
      WHERE p.id = $1 AND p.enabled AND p.status = ANY ($2)
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, from, to, trigger],
  );
  return rows[0] === undefined ? explainRefusal(session, id, "request_run") : pipelineFromRow(rows[0]);
}

async function requestPause(pool: Pool, id: PipelineId): Promise<Pipeline> {
  const { from, to } = transitionsOf("request_pause");
  const waiting = transitionsOf("pause_waiting");
  const { rows } = await pool.query(
    `UPDATE etl.etl_pipelines p SET status = ${NEXT_STATUS}
      WHERE p.id = $1 AND p.status = ANY ($2) AND (p.status <> ALL ($4) OR p.not_before IS NOT NULL)
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, [...from, ...waiting.from], [...to, ...waiting.to], waiting.from],
  );
  return rows[0] === undefined ? explainRefusal(pool, id, "request_pause") : pipelineFromRow(rows[0]);
}

async function requestCancel(pool: Pool, id: PipelineId): Promise<Pipeline> {
  const { from, to } = transitionsOf("request_cancel");
  const { rows } = await pool.query(
    `UPDATE etl.etl_pipelines p
        SET status = coalesce(${NEXT_STATUS}, p.status_before),
            run_requested_at = CASE WHEN p.status = 'RUN_REQUESTED' THEN NULL ELSE p.run_requested_at END,
            run_trigger = CASE WHEN p.status = 'RUN_REQUESTED' THEN NULL ELSE p.run_trigger END
      WHERE p.id = $1 AND p.status = ANY ($2)
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, from, to],
  );
  return rows[0] === undefined ? explainRefusal(pool, id, "request_cancel") : pipelineFromRow(rows[0]);
}

/** Not while it is paused: the load that was paused would be lost. */
async function requestRestore(pool: Pool, id: PipelineId): Promise<Pipeline> {
  const { rows } = await pool.query(
    `UPDATE etl.etl_pipelines p
        SET status = $2, run_kind = 'restore', run_requested_at = clock_timestamp(), run_trigger = 'api'
      WHERE p.id = $1 AND p.enabled AND p.status IN ('IDLE', 'FAILED')
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, nextStatus("IDLE", "request_run")],
  );
  if (rows[0] !== undefined) return pipelineFromRow(rows[0]);
  const { name, status, enabled } = await getPipeline(pool, id);
  if (!enabled) return explainRefusal(pool, id, "request_run");
  throw new VitrinaError(
    "STATUS_CONFLICT",
    `${name} is ${status}; it can be restored only when it is IDLE or FAILED.`,
    {
      extra: { pipeline_status: status },
    },
  );
}

type AskedFor = Extract<PipelineEvent, `request_${string}`>;

async function explainRefusal(session: SqlSession, id: PipelineId, event: AskedFor): Promise<never> {
  const { name, status, enabled } = await getPipeline(session, id);
  if (event === "request_run" && !enabled) {
    throw new VitrinaError("PIPELINE_DISABLED", `${name} is disabled, so it does not run.`, {
      extra: { pipeline_status: status },
    });
  }
  const verb = { request_run: "run", request_cancel: "cancelled", request_pause: "paused" }[event];
  const allowed = transitionsOf(event).from.join(", ");
  throw new VitrinaError("STATUS_CONFLICT", `${name} is ${status}; it can be ${verb} only when it is ${allowed}.`, {
    extra: { pipeline_status: status },
  });
}

export function runRequests(pool: Pool): RunRequests {
  return {
    run: asking("request the run", (id, trigger) => requestRun(pool, id, trigger)),
    pause: asking("request the pause", (id) => requestPause(pool, id)),
    cancel: asking("cancel the run", (id) => requestCancel(pool, id)),
    restore: asking("request the restore", (id) => requestRestore(pool, id)),
  };
}
