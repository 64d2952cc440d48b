import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import { type PipelineEvent, transitionsOf } from "../../domain/pipeline-status.ts";
import type { RunTrigger } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { RunRequests } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";
import { getPipeline } from "./pipelines.ts";
import { allowing, CLAIMABLE, statusAfter } from "./statuses.ts";

/** A load that is requested already, or under way, serves this request too; a restore does not. */
const RUN = `
  UPDATE etl.etl_pipelines p
     SET status = ${statusAfter("request_run")},
         run_requested_at = CASE WHEN p.status = ${statusAfter("request_run")} THEN p.run_requested_at ELSE clock_timestamp() END,
         run_trigger = CASE WHEN p.status = ${statusAfter("request_run")} THEN p.run_trigger ELSE $2 END,
         not_before = NULL
   WHERE p.id = $1 AND p.enabled AND p.run_kind = 'load' AND p.status IN (${allowing("request_run")})
  RETURNING ${PIPELINE_COLUMNS}`;

const WAITING = `p.status IN (${allowing("pause_waiting")})`;
/** Not of a restore: paused, it would go on as a load. */
const PAUSE = `
  UPDATE etl.etl_pipelines p
     SET status = CASE WHEN ${WAITING} THEN ${statusAfter("pause_waiting")} ELSE ${statusAfter("request_pause")} END
   WHERE p.id = $1 AND p.run_kind = 'load'
     AND (p.status IN (${allowing("request_pause")}) OR (${WAITING} AND p.not_before IS NOT NULL))
  RETURNING ${PIPELINE_COLUMNS}`;

/** What nobody has begun is withdrawn; and a sweep that was due is not made up for. */
const CANCEL = `
  UPDATE etl.etl_pipelines p
     SET status = ${statusAfter("request_cancel")}, sweep_wanted_at = NULL,
         run_requested_at = CASE WHEN p.status NOT IN (${CLAIMABLE}) THEN p.run_requested_at END,
         run_trigger = CASE WHEN p.status NOT IN (${CLAIMABLE}) THEN p.run_trigger END
   WHERE p.id = $1 AND p.status IN (${allowing("request_cancel")})
  RETURNING ${PIPELINE_COLUMNS}`;

const RESTORE = `
  UPDATE etl.etl_pipelines p
     SET status = ${statusAfter("request_restore")}, run_kind = 'restore', run_requested_at = clock_timestamp(),
         run_trigger = 'api'
   WHERE p.id = $1 AND p.enabled AND p.status IN (${allowing("request_restore")})
  RETURNING ${PIPELINE_COLUMNS}`;

export function runRequests(pool: Pool): RunRequests {
  return {
    run: asking("request the run", (id, trigger) => requestRun(pool, id, trigger)),
    pause: asking("request the pause", (id) => request(pool, "request_pause", PAUSE, [id])),
    cancel: asking("cancel the run", (id) => request(pool, "request_cancel", CANCEL, [id])),
    restore: asking("request the restore", (id) => request(pool, "request_restore", RESTORE, [id])),
  };
}

export function requestRun(session: SqlSession, id: PipelineId, trigger: RunTrigger): Promise<Pipeline> {
  return request(session, "request_run", RUN, [id, trigger]);
}

const ASKED_FOR = {
  request_run: "run",
  request_pause: "paused",
  request_cancel: "cancelled",
  request_restore: "restored",
} as const satisfies Partial<Record<PipelineEvent, string>>;
type AskedFor = keyof typeof ASKED_FOR;

async function request(
  session: SqlSession,
  event: AskedFor,
  statement: string,
  values: readonly [PipelineId, RunTrigger?],
): Promise<Pipeline> {
  const { rows } = await session.query(statement, [...values]);
  if (rows[0] !== undefined) return pipelineFromRow(rows[0]);
  const pipeline = await getPipeline(session, values[0]);
  throw refusal(event, pipeline, await isRestoring(session, values[0]));
}

async function isRestoring(session: SqlSession, id: PipelineId): Promise<boolean> {
  const { rows } = await session.query("SELECT FROM etl.etl_pipelines WHERE id = $1 AND run_kind = 'restore'", [id]);
  return rows.length > 0;
}

function refusal(event: AskedFor, { name, status, enabled }: Pipeline, restoring: boolean): VitrinaError {
  const extra = { pipeline_status: status };
  if (!enabled && (event === "request_run" || event === "request_restore"))
    return new VitrinaError("PIPELINE_DISABLED", `${name} is disabled, so it does not run.`, { extra });
  const allowed = transitionsOf(event).from.join(", ");
  const detail = restoring
    ? `${name} is ${status} to bring back its previous target; until that has ended it can only be cancelled.`
    : `${name} is ${status}; it can be ${ASKED_FOR[event]} only when it is ${allowed}.`;
  return new VitrinaError("STATUS_CONFLICT", detail, { extra });
}
