import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { installOwnChanges } from "../connectors/postgres/changes/install-own.ts";
import { planQuery } from "../connectors/postgres/changes/plan-query.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type NewPipeline, newPipelineSchema } from "../domain/pipeline.ts";
import { inspectTaskPlan } from "../domain/task-plan.ts";
import type { PipelineStore } from "../meta-store/ports/pipelines.ts";
import { grantSourceAccess } from "../meta-store/roles.ts";
import type { Log } from "../observability/log.ts";
import { type Client, connect } from "../postgres/connection.ts";
import { databaseError } from "../postgres/errors.ts";
import type { Settings } from "../settings/settings.ts";
import { openTaskHost } from "../tasks/open-task-host.ts";
import type { TaskDescription } from "../tasks/task.ts";

const CINEMA = new URL("../../examples/cinema/", import.meta.url);

/** The demo's code tasks; `vitrina start` uses them unless TASKS_DIR is set. */
export const DEMO_TASKS = fileURLToPath(new URL("tasks", CINEMA));

const pipelinesFile = z.strictObject({ pipelines: z.array(newPipelineSchema) });

/**
 * Loads the cinema demo into a database that has neither its schemas nor any pipeline: a database in use is left
 * alone. All data comes in one transaction, so a killed start leaves nothing half done.
 *
 * If a search cluster, tasks or Python become available only later, the pipelines that need them are added then.
 */
export async function loadDemo(
  settings: Settings,
  adminUrl: string,
  store: PipelineStore,
  tasks: readonly TaskDescription[] = [],
): Promise<"loaded" | "extended" | "present" | "skipped"> {
  const wanted = await demoPipelines(settings, tasks);
  const { items } = await store.list({ limit: MOST_PIPELINES });
  if (items.length === 0) {
    const data = await connected(adminUrl, loadData);
    if (data === "foreign") return "skipped";
    await grantSourceAccess(adminUrl, settings.sourceSchemas);
    await createMarts(settings.databaseUrls(adminUrl).writer);
    await recordChanges(settings, adminUrl, wanted);
    await addPipelines(wanted, [], adminUrl, store);
    return "loaded";
  }
  const [mark, ...others] = new Set(await connected(adminUrl, readMarks));
  if (mark === undefined || others.length > 0 || !isDemoMark(mark)) return "present";
  // Each is added only once: one that was deleted stays deleted.
  const brought = mark.slice(DEMO_MARK.length).match(/\w+/g) ?? [];
  const known = [...brought, ...items.map(({ name }) => name)];
  const missing = wanted.filter(({ name }) => !known.includes(name));
  if (missing.length === 0) return "present";
  await recordChanges(settings, adminUrl, missing);
  await addPipelines(missing, brought, adminUrl, store);
  return "extended";
}

/** What the owner of a source does once, by the script of `vitrina follow script`: this source is ours. */
async function recordChanges(settings: Settings, adminUrl: string, pipelines: readonly NewPipeline[]): Promise<void> {
  const reader = decodeURIComponent(new URL(settings.databaseUrls(adminUrl).reader).username);
  for (const { mode, source_query: query, target_key: key, follow } of pipelines) {
    if (mode !== "follow") continue;
    const request = { query, columns: [], key, tables: follow.tables };
    const makePlan = planQuery({ allowedSchemas: settings.sourceSchemas });
    const plan = await connected(adminUrl, (client) => makePlan(client, request));
    await installOwnChanges(adminUrl, reader, plan);
  }
}

/** Creates pipelines, and records with the demo's data which ones have been added. */
async function addPipelines(
  pipelines: readonly NewPipeline[],
  broughtBefore: readonly string[],
  adminUrl: string,
  store: PipelineStore,
): Promise<void> {
  for (const pipeline of pipelines) await store.create(pipeline, "demo");
  const names = [...broughtBefore, ...pipelines.map(({ name }) => name)];
  await connected(adminUrl, (client) => markSchemas(client, `${DEMO_MARK}: ${names.join(", ")}`));
}

const DEMO_MARK = "Vitrina cinema demo";
const MOST_PIPELINES = 1000;

/** As the writer, so that it owns its targets. Existing tables with these names stay as they are. */
async function createMarts(writerUrl: string): Promise<void> {
  const targets = (await allPipelines()).map(({ target_table }) => target_table).filter((name) => !name.includes(":"));
  await connected(writerUrl, async (client) => {
    const { rows } = await client.query(
      `SELECT has_schema_privilege(to_regnamespace('analytics'), 'CREATE')
          AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS target WHERE to_regclass(target) IS NOT NULL) AS free`,
      [targets],
    );
    // Statements sent as one text run in one transaction.
    if (rows[0]?.free === true) await client.query(await readFile(new URL("marts.sql", CINEMA), "utf8"));
  });
}

function isDemoMark(mark: string): boolean {
  return mark.startsWith(DEMO_MARK);
}

async function connected<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect({ url, applicationName: "vitrina demo" });
  try {
    return await work(client);
  } catch (error) {
    throw databaseError(error, "load the demo");
  } finally {
    await client.end();
  }
}

async function readMarks(client: Client): Promise<string[]> {
  const { rows } = await client.query(
    `SELECT coalesce(obj_description(oid, 'pg_namespace'), '') AS mark
       FROM pg_namespace WHERE nspname IN ('content', 'ugc')`,
  );
  return rows.map(({ mark }) => mark);
}

async function markSchemas(client: Client, mark: string): Promise<void> {
  for (const schema of ["content", "ugc"]) await client.query(`COMMENT ON SCHEMA ${schema} IS '${mark}'`);
}

/** The mark distinguishes the demo's own schemas, left by a start that was killed, from anybody else's. */
async function loadData(client: Client): Promise<"loaded" | "foreign"> {
  const marks = await readMarks(client);
  if (!marks.every(isDemoMark)) return "foreign";
  if (marks.length > 0) return "loaded";
  await client.query("BEGIN");
  // Fails if somebody created them in the meantime: their tables could have triggers that run with our rights.
  await client.query("CREATE SCHEMA content; CREATE SCHEMA ugc");
  await client.query(await readFile(new URL("schema.sql", CINEMA), "utf8"));
  await client.query(await readFile(new URL("data.sql", CINEMA), "utf8"));
  await markSchemas(client, DEMO_MARK);
  await client.query("COMMIT");
  return "loaded";
}

/** The demo's pipelines that can run here: their targets may be written, and their code tasks exist. */
export async function demoPipelines(
  settings: Settings,
  tasks: readonly TaskDescription[],
): Promise<readonly NewPipeline[]> {
  const pipelines = await allPipelines();
  return pipelines.filter((one) => isReachable(one, settings) && missingTasks(one, settings, tasks).length === 0);
}

/** A sentence for each pipeline that is missing because its code task is. */
export async function demoLacks(settings: Settings, tasks: readonly TaskDescription[]): Promise<string[]> {
  const pipelines = await allPipelines();
  return pipelines.flatMap((one) =>
    missingTasks(one, settings, tasks).map(({ name, language }) => {
      const lack =
        language === "PYTHON" && settings.tasks.folder === DEMO_TASKS
          ? `there is no Python 3.10 or newer for its task ${name}`
          : `TASKS_DIR has no ${language} task ${name}`;
      return `The demo comes without ${one.name}: ${lack}.`;
    }),
  );
}

/** What the task host of a runner would find on this machine. */
export async function findTasks({ tasks }: Settings, log: Log): Promise<readonly TaskDescription[]> {
  const host = openTaskHost({ ...tasks, log });
  try {
    await host.load();
    return host.list();
  } finally {
    await host.close();
  }
}

async function allPipelines(): Promise<readonly NewPipeline[]> {
  const parsed = pipelinesFile.safeParse(parse(await readFile(new URL("pipelines.yaml", CINEMA), "utf8")));
  if (parsed.success) return parsed.data.pipelines;
  throw new VitrinaError("INVALID_REQUEST", `The demo's pipelines.yaml is not valid: ${z.prettifyError(parsed.error)}`);
}

function isReachable({ target_table }: NewPipeline, { targets }: Settings): boolean {
  const target = targets.parse(target_table);
  return targets.isConfigured(target) && targets.isAllowed(target);
}

function missingTasks(pipeline: NewPipeline, { targets }: Settings, tasks: readonly TaskDescription[]) {
  return inspectTaskPlan(pipeline, targets).transforms.filter(
    ({ language, name }) => !tasks.some((task) => task.language === language && task.name === name),
  );
}
