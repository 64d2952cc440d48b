import type pg from "pg";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import {
  isPipelineId,
  lockedFields,
  type NewPipeline,
  type Pipeline,
  type PipelineConfig,
  type PipelineId,
  type PipelinePatch,
} from "../../domain/pipeline.ts";
import { isHeld, nextStatus, type PipelineEvent, transitionsOf } from "../../domain/pipeline-status.ts";
import type { RunTrigger } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import type { Page, PageRequest } from "../meta-store.ts";
import { CONFIG_COLUMNS, configOf, PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";

const UNIQUE_VIOLATION = "23505";

export async function listPipelines(pool: Pool, page: PageRequest): Promise<Page<Pipeline>> {
  const { rows } = await pool.query(
    `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p
      WHERE $1::text IS NULL OR p.name COLLATE "C" > $1 COLLATE "C"
      ORDER BY p.name COLLATE "C" LIMIT $2`,
    [page.after ?? null, page.limit + 1],
  );
  const items = rows.slice(0, page.limit).map(pipelineFromRow);
  return { items, next: rows.length > page.limit ? (items.at(-1)?.name ?? null) : null };
}

export async function getPipeline(session: SqlSession, idOrName: string): Promise<Pipeline> {
  const column = isPipelineId(idOrName) ? "id" : "name";
  const { rows } = await session.query(`SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE p.${column} = $1`, [
    idOrName,
  ]);
  const [row] = rows;
  if (row === undefined) throw pipelineNotFound(idOrName);
  return pipelineFromRow(row);
}

export async function createPipeline(pool: Pool, pipeline: NewPipeline, author: string): Promise<Pipeline> {
  const { id, ...config } = pipeline;
  try {
    return await inTransaction(pool, async (client) => {
      const { rows } = await client.query(
        `INSERT INTO etl.etl_pipelines (id, ${CONFIG_COLUMNS.join(", ")})
         VALUES (coalesce($1::uuid, gen_random_uuid()), ${CONFIG_COLUMNS.map((_, index) => `$${index + 2}`).join(", ")})
         RETURNING id`,
        [id ?? null, ...columnValues(config)],
      );
      const pipelineId = rows[0].id as PipelineId;
      await replaceTasks(client, pipelineId, config);
      await keepVersion(client, pipelineId, 1, config, author);
      return lockPipeline(client, pipelineId);
    });
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) throw takenError(error, pipeline);
    throw error;
  }
}

/** `check` sees the whole pipeline as it would become, and refuses it by throwing. */
export async function updatePipeline(
  pool: Pool,
  id: PipelineId,
  patch: PipelinePatch,
  author: string,
  check: (merged: Pipeline) => void = () => undefined,
): Promise<Pipeline> {
  try {
    return await inTransaction(pool, async (client) => {
      const current = await lockPipeline(client, id);
      requireUnlocked(current, patch);
      const merged = { ...current, ...patch } as Pipeline;
      if (JSON.stringify(configOf(merged)) === JSON.stringify(configOf(current))) return current;
      check(merged);
      const version = current.config_version + 1;
      await client.query(
        `UPDATE etl.etl_pipelines
            SET ${CONFIG_COLUMNS.map((column, index) => `${column} = $${index + 3}`).join(", ")},
                config_version = $2, updated_at = clock_timestamp()
          WHERE id = $1`,
        [id, version, ...columnValues(merged)],
      );
      await replaceTasks(client, id, merged);
      await keepVersion(client, id, version, merged, author);
      return lockPipeline(client, id);
    });
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) throw takenError(error, { ...patch, id });
    throw error;
  }
}

export async function deletePipeline(pool: Pool, id: PipelineId): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { name, status } = await lockPipeline(client, id);
    if (isHeld(status)) {
      throw new VitrinaError("STATUS_CONFLICT", `${name} is ${status}: it cannot be deleted while a runner holds it.`, {
        extra: { pipeline_status: status },
        hint: "Pause it first, or wait until its run has ended.",
      });
    }
    await client.query("DELETE FROM etl.etl_pipelines WHERE id = $1", [id]);
  });
}

export async function requestRun(session: SqlSession, id: PipelineId, trigger: RunTrigger): Promise<Pipeline> {
  const { from, to } = transitionsOf("request_run");
  const { rows } = await session.query(
    `UPDATE etl.etl_pipelines p
        SET status = t.to_status,
            run_requested_at = CASE WHEN p.status = t.to_status THEN p.run_requested_at ELSE clock_timestamp() END,
            run_trigger = CASE WHEN p.status = t.to_status THEN p.run_trigger ELSE $4 END
       FROM unnest($2::text[], $3::text[]) AS t (from_status, to_status)
      WHERE p.id = $1 AND p.enabled AND p.status = t.from_status
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, from, to, trigger],
  );
  return rows[0] === undefined ? explainRefusal(session, id, "request_run") : pipelineFromRow(rows[0]);
}

export async function requestPause(pool: Pool, id: PipelineId): Promise<Pipeline> {
  const { from, to } = transitionsOf("request_pause");
  const { rows } = await pool.query(
    `UPDATE etl.etl_pipelines p SET status = t.to_status
       FROM unnest($2::text[], $3::text[]) AS t (from_status, to_status)
      WHERE p.id = $1 AND p.status = t.from_status
      RETURNING ${PIPELINE_COLUMNS}`,
    [id, from, to],
  );
  return rows[0] === undefined ? explainRefusal(pool, id, "request_pause") : pipelineFromRow(rows[0]);
}

/** Not while it is paused: the load that was paused would be lost. */
export async function requestRestore(pool: Pool, id: PipelineId): Promise<Pipeline> {
  const { rows } = await pool.query(
    `UPDATE etl.etl_pipelines p
        SET status = $2, restore_id = gen_random_uuid(), run_requested_at = clock_timestamp(), run_trigger = 'api'
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

async function explainRefusal(session: SqlSession, id: PipelineId, event: PipelineEvent): Promise<never> {
  const { name, status, enabled } = await getPipeline(session, id);
  if (event === "request_run" && !enabled) {
    throw new VitrinaError("PIPELINE_DISABLED", `${name} is disabled, so it does not run.`, {
      extra: { pipeline_status: status },
    });
  }
  const verb = event === "request_run" ? "run" : "paused";
  const allowed = transitionsOf(event).from.join(", ");
  throw new VitrinaError("STATUS_CONFLICT", `${name} is ${status}; it can be ${verb} only when it is ${allowed}.`, {
    extra: { pipeline_status: status },
  });
}

function requireUnlocked(current: Pipeline, patch: PipelinePatch): void {
  const locked = lockedFields(current.status, current, patch);
  if (locked.length === 0) return;
  throw new VitrinaError(
    "FIELD_LOCKED_WHILE_RUNNING",
    `${current.name} is ${current.status}: ${locked.join(", ")} can change only when it is IDLE, PAUSED or FAILED.`,
    {
      extra: { pipeline_status: current.status },
      problems: locked.map((field) => ({ pointer: `/${field}`, message: "Locked while the pipeline runs." })),
    },
  );
}

async function lockPipeline(client: pg.PoolClient, id: PipelineId): Promise<Pipeline> {
  const { rows } = await client.query(
    `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE p.id = $1 FOR UPDATE OF p`,
    [id],
  );
  if (rows[0] === undefined) throw pipelineNotFound(id);
  return pipelineFromRow(rows[0]);
}

function columnValues(config: PipelineConfig): unknown[] {
  return CONFIG_COLUMNS.map((column) => config[column]);
}

async function replaceTasks(client: pg.PoolClient, id: PipelineId, config: PipelineConfig): Promise<void> {
  await client.query("DELETE FROM etl.etl_pipeline_tasks WHERE pipeline_id = $1", [id]);
  if (config.tasks.length === 0) return;
  await client.query(
    `INSERT INTO etl.etl_pipeline_tasks (pipeline_id, order_index, task_type, body, source_table, target_table)
     SELECT $1, order_index, task_type, body, source_table, target_table
       FROM jsonb_to_recordset($2::jsonb)
         AS t (order_index integer, task_type text, body text, source_table text, target_table text)`,
    [id, JSON.stringify(config.tasks)],
  );
}

async function keepVersion(
  client: pg.PoolClient,
  id: PipelineId,
  version: number,
  config: object,
  author: string,
): Promise<void> {
  await client.query(
    "INSERT INTO etl.etl_pipeline_versions (pipeline_id, version, config, author) VALUES ($1, $2, $3, $4)",
    [id, version, JSON.stringify(configOf(config)), author],
  );
}

function pipelineNotFound(idOrName: string): VitrinaError {
  return new VitrinaError("PIPELINE_NOT_FOUND", `There is no pipeline "${idOrName}".`);
}

function takenError(error: unknown, pipeline: { name?: string | undefined; id?: string | undefined }): VitrinaError {
  const constraint = (error as { constraint?: string }).constraint;
  return constraint === "etl_pipelines_pkey"
    ? new VitrinaError("PIPELINE_ID_TAKEN", `There is already a pipeline with the id ${pipeline.id}.`, { cause: error })
    : new VitrinaError("PIPELINE_NAME_TAKEN", `There is already a pipeline named "${pipeline.name}".`, {
        cause: error,
      });
}
