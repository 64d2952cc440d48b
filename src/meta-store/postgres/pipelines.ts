import type pg from "pg";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import {
  isPipelineId,
  isPipelineName,
  lockedFields,
  type NewPipeline,
  type Pipeline,
  type PipelineConfig,
  type PipelineId,
  type PipelinePatch,
} from "../../domain/pipeline.ts";
import { isHeld } from "../../domain/pipeline-status.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import type { Page, PageRequest } from "../ports/page.ts";
import type { PipelineChange, PipelineFilter, PipelineStore } from "../ports/pipelines.ts";
import { asking } from "./asking.ts";
import { noteSubject, passOverSubject, recordSubject } from "./audit.ts";
import { Conditions } from "./conditions.ts";
import { invalidPageMark } from "./page-mark.ts";
import { CONFIG_COLUMNS, configOf, PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";

const UNIQUE_VIOLATION = "23505";

/** By name. The page mark is the name of the last pipeline. */
async function listPipelines(pool: Pool, page: PageRequest, filter: PipelineFilter): Promise<Page<Pipeline>> {
  if (page.after !== undefined && !isPipelineName(page.after)) throw invalidPageMark();
  const conditions = new Conditions();
  conditions.addIfGiven(filter.status, (value) => `p.status = ${value}`);
  conditions.addIfGiven(filter.enabled, (value) => `p.enabled = ${value}`);
  conditions.addIfGiven(filter.mode, (value) => `p.mode = ${value}`);
  conditions.addIfGiven(filter.target_table, (value) => `p.target_table = ${value}`);
  conditions.addIfGiven(filter.name, (value) => `starts_with(p.name COLLATE "C", ${value})`);
  conditions.addIfGiven(page.after, (value) => `p.name COLLATE "C" > ${value}`);
  const { rows } = await pool.query(
    `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p ${conditions.where}
      ORDER BY p.name COLLATE "C" LIMIT ${conditions.place(page.limit + 1)}`,
    conditions.values,
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
  const pipeline = pipelineFromRow(row);
  noteSubject(pipeline.id, pipeline.name);
  return pipeline;
}

function createPipeline(pool: Pool, pipeline: NewPipeline, author: string): Promise<Pipeline> {
  return inTransaction(pool, (client) => createIn(client, pipeline, author));
}

async function createIn(client: pg.PoolClient, pipeline: NewPipeline, author: string): Promise<Pipeline> {
  const { id, ...config } = pipeline;
  try {
    const { rows } = await client.query(
      `INSERT INTO etl.etl_pipelines (id, ${CONFIG_COLUMNS.join(", ")})
       VALUES (coalesce($1::uuid, gen_random_uuid()), ${CONFIG_COLUMNS.map((_, index) => `$${index + 2}`).join(", ")})
       RETURNING id`,
      [id ?? null, ...columnValues(config)],
    );
    const pipelineId = rows[0].id as PipelineId;
    await replaceTasks(client, pipelineId, config);
    await keepVersion(client, pipelineId, 1, config, author);
    return await lockPipeline(client, pipelineId);
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) throw takenError(error, pipeline);
    throw error;
  }
}

/** `check` sees the whole pipeline as it would become, and refuses it by throwing. */
function updatePipeline(
  pool: Pool,
  id: PipelineId,
  patch: PipelinePatch,
  author: string,
  check: MergedCheck = () => undefined,
  expectedVersion?: number,
): Promise<Pipeline> {
  return inTransaction(pool, (client) => updateIn(client, id, patch, author, check, expectedVersion));
}

type MergedCheck = (merged: Pipeline) => void | Promise<void>;

async function updateIn(
  client: pg.PoolClient,
  id: PipelineId,
  patch: PipelinePatch,
  author: string,
  check: MergedCheck,
  expectedVersion: number | undefined,
): Promise<Pipeline> {
  try {
    const current = await lockPipeline(client, id);
    requireVersion(current, expectedVersion);
    requireUnlocked(current, patch);
    const merged = { ...current, ...patch } as Pipeline;
    if (JSON.stringify(configOf(merged)) === JSON.stringify(configOf(current))) return current;
    await check(merged);
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
    return await lockPipeline(client, id);
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) throw takenError(error, { ...patch, id });
    throw error;
  }
}

/** In one order whoever asks, so that two callers with the same pipelines do not wait for each other. */
function applyPipelines(pool: Pool, changes: readonly PipelineChange[], author: string): Promise<Pipeline[]> {
  const orderOf = (change: PipelineChange): string => ("create" in change ? change.create.name : change.update);
  const inOrder = [...changes.entries()].sort(([, a], [, b]) => (orderOf(a) < orderOf(b) ? -1 : 1));
  return inTransaction(pool, async (client) => {
    const applied = new Map<number, Pipeline>();
    passOverSubject();
    for (const [place, change] of inOrder) {
      try {
        const pipeline =
          "create" in change
            ? await createIn(client, change.create, author)
            : await updateIn(client, change.update, change.patch, author, () => undefined, change.expectedVersion);
        applied.set(place, pipeline);
        await recordSubject(client);
      } catch (error) {
        throw error instanceof VitrinaError ? pointingAt(place, error) : error;
      }
    }
    return changes.flatMap((_, place) => applied.get(place) ?? []);
  });
}

function pointingAt(place: number, error: VitrinaError): VitrinaError {
  const { known, message, problems, hint, extra } = error;
  const places = problems.length > 0 ? problems : [{ pointer: "", message }];
  return new VitrinaError(known, message, {
    cause: error,
    hint,
    extra,
    problems: places.map((problem) => ({ ...problem, pointer: `/pipelines/${place}${problem.pointer}` })),
  });
}

async function deletePipeline(pool: Pool, id: PipelineId, expectedVersion?: number): Promise<void> {
  await inTransaction(pool, async (client) => {
    const current = await lockPipeline(client, id);
    requireVersion(current, expectedVersion);
    const { name, status } = current;
    if (isHeld(status)) {
      throw new VitrinaError("STATUS_CONFLICT", `${name} is ${status}: it cannot be deleted while a runner holds it.`, {
        extra: { pipeline_status: status },
        hint: "Pause it first, or wait until its run has ended.",
      });
    }
    await client.query("DELETE FROM etl.etl_pipelines WHERE id = $1", [id]);
  });
}

function requireVersion({ name, config_version }: Pipeline, expected: number | undefined): void {
  if (expected === undefined || expected === config_version) return;
  throw new VitrinaError(
    "PRECONDITION_FAILED",
    `${name} is at version ${config_version} by now, not at version ${expected}: nothing was changed.`,
    { extra: { config_version } },
  );
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

export async function lockPipeline(client: pg.PoolClient, id: PipelineId): Promise<Pipeline> {
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
  const { name } = configOf(config);
  noteSubject(id, name, { version_before: version === 1 ? null : version - 1, version_after: version });
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

export function pipelineStore(pool: Pool): PipelineStore {
  return {
    list: asking("list the pipelines", (page, filter = {}) => listPipelines(pool, page, filter)),
    get: asking("read the pipeline", (idOrName) => getPipeline(pool, idOrName)),
    create: asking("create the pipeline", (pipeline, author) => createPipeline(pool, pipeline, author)),
    update: asking("change the pipeline", (id, patch, author, check, expectedVersion) =>
      updatePipeline(pool, id, patch, author, check, expectedVersion),
    ),
    apply: asking("apply the pipelines", (changes, author) => applyPipelines(pool, changes, author)),
    delete: asking("delete the pipeline", (id, expectedVersion) => deletePipeline(pool, id, expectedVersion)),
  };
}
