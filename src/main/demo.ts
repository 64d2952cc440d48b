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
): Promise<"loaded" | "present" | "skipped"> {
  const hasPipelines = (await store.listPipelines({ limit: 1 })).items.length > 0;
  if (hasPipelines) return "present";
  const data = await loadData(adminUrl);
  if (data === "foreign") return "skipped";
  await grantSourceAccess(adminUrl, settings.sourceSchemas);
  for (const pipeline of await demoPipelines(settings)) await store.createPipeline(pipeline, "demo");
  return "loaded";
}

const DEMO_MARK = "Vitrina cinema demo";

/** The mark tells the demo's own schemas, left by a start that was killed, from somebody else's. */
async function loadData(adminUrl: string): Promise<"loaded" | "foreign"> {
  const client = await connect({ url: adminUrl, applicationName: "vitrina demo" });
  try {
    const { rows } = await client.query(
      `SELECT coalesce(obj_description(oid, 'pg_namespace'), '') AS mark
         FROM pg_namespace WHERE nspname IN ('content', 'ugc')`,
    );
    if (rows.some(({ mark }) => mark !== DEMO_MARK)) return "foreign";
    if (rows.length > 0) return "loaded";
    await client.query("BEGIN");
    // Fails when somebody made them meanwhile: tables of somebody else could have triggers, which would run as we.
    await client.query("CREATE SCHEMA content; CREATE SCHEMA ugc");
    await client.query(await readFile(new URL("schema.sql", CINEMA), "utf8"));
    await client.query(await readFile(new URL("data.sql", CINEMA), "utf8"));
    for (const schema of ["content", "ugc"]) await client.query(`COMMENT ON SCHEMA ${schema} IS '${DEMO_MARK}'`);
    await client.query("COMMIT");
    return "loaded";
  } catch (error) {
    throw databaseError(error, "load the demo");
  } finally {
    await client.end();
  }
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
