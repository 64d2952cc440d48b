import { z } from "zod";
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
import type { PageRequest } from "../ports/page.ts";
import type { ConfigurationChange, PipelineFilter, PipelineStore, PipelineUpdate } from "../ports/pipelines.ts";
import { asking } from "./asking.ts";
import { noteSubject, passOverSubject, recordSubject } from "./audit.ts";
import { Conditions } from "./conditions.ts";
import { invalidPageMark, pageOf } from "./pages.ts";
import { CONFIG_COLUMNS, configOf, PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";
import { decodeRow, pipelineId } from "./rows.ts";

const UNIQUE_VIOLATION = "23505";

export function pipelineStore(pool: Pool): PipelineStore {
  return {
    /** The page mark is the name of the last pipeline. */
    list: asking("list the pipelines", async (page, filter = {}) => {
      if (page.after !== undefined && !isPipelineName(page.after)) throw invalidPageMark();
      const conditions = conditionsOf(page, filter);
      const { rows } = await pool.query(
        `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p ${conditions.where}
          ORDER BY p.name COLLATE "C" LIMIT ${conditions.place(page.limit + 1)}`,
        conditions.values,
      );
      return pageOf(rows.map(pipelineFromRow), page, ({ name }) => name);
    }),

    get: asking("read the pipeline", (idOrName) => getPipeline(pool, idOrName)),

    create: asking("create the pipeline", (pipeline, author) =>
      inTransaction(pool, (session) => createIn(session, pipeline, author)),
    ),

    update: asking("change the pipeline", (id, patch, update) =>
      inTransaction(pool, (session) => updateIn(session, id, patch, update)),
    ),

    /** In one order whoever asks, so that two callers with the same pipelines do not wait for each other. */
    apply: asking("apply the pipelines", (changes, author) => {
      const orderOf = (change: ConfigurationChange): string =>
        "create" in change ? change.create.name : change.update;
      const inOrder = [...changes.entries()].sort(([, a], [, b]) => (orderOf(a) < orderOf(b) ? -1 : 1));
      return inTransaction(pool, async (session) => {
        const applied = new Map<number, Pipeline>();
        passOverSubject();
        for (const [place, change] of inOrder) {
          applied.set(place, await applyIn(session, change, author).catch((error) => pointAt(place, error)));
          await recordSubject(session);
        }
        return changes.flatMap((_, place) => applied.get(place) ?? []);
      });
    }),

    delete: asking("delete the pipeline", (id, expectedVersion) =>
      inTransaction(pool, async (session) => {
        const current = await lockPipeline(session, id);
        requireVersion(current, expectedVersion);
        requireNotHeld(current, "it cannot be deleted");
        await session.query("DELETE FROM etl.etl_pipelines WHERE id = $1", [id]);
      }),
    ),
  };
}

function conditionsOf(page: PageRequest, filter: PipelineFilter): Conditions {
  const conditions = new Conditions();
  conditions.addIfGiven(filter.status, (value) => `p.status = ${value}`);
  conditions.addIfGiven(filter.enabled, (value) => `p.enabled = ${value}`);
  conditions.addIfGiven(filter.mode, (value) => `p.mode = ${value}`);
  conditions.addIfGiven(filter.target_table, (value) => `p.target_table = ${value}`);
  conditions.addIfGiven(filter.name, (value) => `starts_with(p.name COLLATE "C", ${value})`);
  conditions.addIfGiven(page.after, (value) => `p.name COLLATE "C" > ${value}`);
  return conditions;
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

async function createIn(session: SqlSession, { id, ...config }: NewPipeline, author: string): Promise<Pipeline> {
  try {
    const created = await session.query(
      `INSERT INTO etl.etl_pipelines (id, ${CONFIG_COLUMNS.join(", ")})
       VALUES (coalesce($1::uuid, gen_random_uuid()), ${CONFIG_COLUMNS.map((_, index) => `$${index + 2}`).join(", ")})
       RETURNING id`,
      [id ?? null, ...columnValues(config)],
    );
    const made = decodeRow(z.object({ id: pipelineId }), created.rows[0]);
    await replaceTasks(session, made.id, config);
    await keepVersion(session, { id: made.id, version: 1, config, author });
    return await lockPipeline(session, made.id);
  } catch (error) {
    throw sqlState(error) === UNIQUE_VIOLATION ? takenError(error, { ...config, id }) : error;
  }
}

async function updateIn(
  session: SqlSession,
  id: PipelineId,
  patch: PipelinePatch,
  { author, check, expectedVersion }: PipelineUpdate,
): Promise<Pipeline> {
  try {
    const current = await lockPipeline(session, id);
    requireVersion(current, expectedVersion);
    requireUnlocked(current, patch);
    const merged = { ...current, ...patch } as Pipeline;
    if (JSON.stringify(configOf(merged)) === JSON.stringify(configOf(current))) return current;
    await check?.(merged);
    const version = current.config_version + 1;
    await session.query(
      `UPDATE etl.etl_pipelines
          SET ${CONFIG_COLUMNS.map((column, index) => `${column} = $${index + 3}`).join(", ")},
              config_version = $2, updated_at = clock_timestamp()
        WHERE id = $1`,
      [id, version, ...columnValues(merged)],
    );
    await replaceTasks(session, id, merged);
    await keepVersion(session, { id, version, config: merged, author });
    return await lockPipeline(session, id);
  } catch (error) {
    throw sqlState(error) === UNIQUE_VIOLATION ? takenError(error, { ...patch, id }) : error;
  }
}

function applyIn(session: SqlSession, change: ConfigurationChange, author: string): Promise<Pipeline> {
  if ("create" in change) return createIn(session, change.create, author);
  const { update, patch, expectedVersion } = change;
  return updateIn(session, update, patch, { author, expectedVersion });
}

/** A refusal names the pipeline by its place. */
function pointAt(place: number, error: unknown): never {
  if (!(error instanceof VitrinaError)) throw error;
  const { known, message, problems, hint, extra } = error;
  const places = problems.length > 0 ? problems : [{ pointer: "", message }];
  throw new VitrinaError(known, message, {
    cause: error,
    hint,
    extra,
    problems: places.map((problem) => ({ ...problem, pointer: `/pipelines/${place}${problem.pointer}` })),
  });
}

/** `what` cannot be done while a runner works with the pipeline. */
export function requireNotHeld({ name, status }: Pipeline, what: string): void {
  if (!isHeld(status)) return;
  throw new VitrinaError("STATUS_CONFLICT", `${name} is ${status}: ${what} while a runner holds it.`, {
    extra: { pipeline_status: status },
    hint: "Pause it first, or wait until its run has ended.",
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

export async function lockPipeline(session: SqlSession, id: PipelineId): Promise<Pipeline> {
  const { rows } = await session.query(
    `SELECT ${PIPELINE_COLUMNS} FROM etl.etl_pipelines p WHERE p.id = $1 FOR UPDATE OF p`,
    [id],
  );
  if (rows[0] === undefined) throw pipelineNotFound(id);
  return pipelineFromRow(rows[0]);
}

function columnValues(config: PipelineConfig): unknown[] {
  return CONFIG_COLUMNS.map((column) => config[column]);
}

async function replaceTasks(session: SqlSession, id: PipelineId, config: PipelineConfig): Promise<void> {
  await session.query("DELETE FROM etl.etl_pipeline_tasks WHERE pipeline_id = $1", [id]);
  if (config.tasks.length === 0) return;
  await session.query(
    `INSERT INTO etl.etl_pipeline_tasks (pipeline_id, order_index, task_type, body, source_table, target_table)
     SELECT $1, order_index, task_type, body, source_table, target_table
       FROM jsonb_to_recordset($2::jsonb)
         AS t (order_index integer, task_type text, body text, source_table text, target_table text)`,
    [id, JSON.stringify(config.tasks)],
  );
}

interface KeptVersion {
  readonly id: PipelineId;
  readonly version: number;
  readonly config: PipelineConfig;
  readonly author: string;
}

async function keepVersion(session: SqlSession, { id, version, config, author }: KeptVersion): Promise<void> {
  noteSubject(id, config.name, { version_before: version === 1 ? null : version - 1, version_after: version });
  await session.query(
    "INSERT INTO etl.etl_pipeline_versions (pipeline_id, version, config, author) VALUES ($1, $2, $3, $4)",
    [id, version, JSON.stringify(configOf(config)), author],
  );
}

export function pipelineNotFound(idOrName: string): VitrinaError {
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
