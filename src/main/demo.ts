import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type NewPipeline, newPipelineSchema } from "../domain/pipeline.ts";
import { isAllowedTarget, parseTarget } from "../domain/target.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import { grantSourceAccess } from "../meta-store/roles.ts";
import { connect } from "../postgres/connection.ts";
import { databaseError } from "../postgres/errors.ts";
import type { Settings } from "../settings/settings.ts";

const CINEMA = new URL("../../examples/cinema/", import.meta.url);

const pipelinesFile = z.strictObject({ pipelines: z.array(newPipelineSchema) });

/**
 * Loads the cinema demo into a database that has neither its schemas nor any pipeline: a database in use is left
 * alone. All data comes in one transaction, so a killed start leaves nothing half done.
 */
export async function loadDemo(
  settings: Settings,
  adminUrl: string,
  store: MetaStore,
): Promise<"loaded" | "extended" | "present" | "skipped"> {
  const hasPipelines = (await store.listPipelines({ limit: 1 })).items.length > 0;
  if (hasPipelines) return (await addSearchPipelines(settings, adminUrl, store)) ? "extended" : "present";
  const data = await asAdministrator(adminUrl, loadData);
  if (data === "foreign") return "skipped";
  await grantSourceAccess(adminUrl, settings.sourceSchemas);
  const pipelines = await demoPipelines(settings);
  for (const pipeline of pipelines) await store.createPipeline(pipeline, "demo");
  if (pipelines.some(isOfSearch)) await asAdministrator(adminUrl, (client) => markSchemas(client, SEARCH_MARK));
  return "loaded";
}

/** A cluster may be configured after the first start. They are added once: who deletes them has deleted them. */
async function addSearchPipelines(settings: Settings, adminUrl: string, store: MetaStore): Promise<boolean> {
  const wanted = (await demoPipelines(settings)).filter(isOfSearch);
  if (wanted.length === 0) return false;
  const marks = await asAdministrator(adminUrl, readMarks);
  if (marks.length === 0 || marks.some((mark) => mark !== DEMO_MARK)) return false;
  const { items } = await store.listPipelines({ limit: MOST_PIPELINES });
  const missing = wanted.filter(({ name }) => items.every((pipeline) => pipeline.name !== name));
  for (const pipeline of missing) await store.createPipeline(pipeline, "demo");
  await asAdministrator(adminUrl, (client) => markSchemas(client, SEARCH_MARK));
  return missing.length > 0;
}

const DEMO_MARK = "Vitrina cinema demo";
const SEARCH_MARK = `${DEMO_MARK}, with search`;
const MOST_PIPELINES = 1000;

type Client = Awaited<ReturnType<typeof connect>>;

async function asAdministrator<T>(adminUrl: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect({ url: adminUrl, applicationName: "vitrina demo" });
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

/** The mark tells the demo's own schemas, left by a start that was killed, from somebody else's. */
async function loadData(client: Client): Promise<"loaded" | "foreign"> {
  const marks = await readMarks(client);
  if (marks.some((mark) => mark !== DEMO_MARK && mark !== SEARCH_MARK)) return "foreign";
  if (marks.length > 0) return "loaded";
  await client.query("BEGIN");
  // Fails when somebody made them meanwhile: tables of somebody else could have triggers, which would run as we.
  await client.query("CREATE SCHEMA content; CREATE SCHEMA ugc");
  await client.query(await readFile(new URL("schema.sql", CINEMA), "utf8"));
  await client.query(await readFile(new URL("data.sql", CINEMA), "utf8"));
  await markSchemas(client, DEMO_MARK);
  await client.query("COMMIT");
  return "loaded";
}

function isOfSearch({ target_table }: NewPipeline): boolean {
  return parseTarget(target_table).kind === "elasticsearch";
}

/** The pipelines that the demo brings; those of a search cluster only where there is one that may be written. */
export async function demoPipelines({ search, targets }: Settings): Promise<NewPipeline[]> {
  const parsed = pipelinesFile.safeParse(parse(await readFile(new URL("pipelines.yaml", CINEMA), "utf8")));
  const isUsable = ({ target_table }: NewPipeline): boolean => {
    const target = parseTarget(target_table);
    return target.kind !== "elasticsearch" || (search.urls.length > 0 && isAllowedTarget(target, targets));
  };
  if (parsed.success) return parsed.data.pipelines.filter(isUsable);
  throw new VitrinaError("INVALID_REQUEST", `The demo's pipelines.yaml is not valid: ${z.prettifyError(parsed.error)}`);
}
