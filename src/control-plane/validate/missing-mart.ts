import type { SourceInspector } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { allPipelines, isInOneDatabase, martReads } from "../graph/mart-reads.ts";
import type { Validator } from "./validator.ts";

/**
 * A query that reads another mart cannot be examined before that is there: its first run makes it. So a chain that is
 * saved at once fails at its second mart, and people have to be told why.
 */
export async function namingMissingMart(
  validator: Validator,
  source: SourceInspector,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof VitrinaError) || error.code !== "SOURCE_QUERY_FAILED") return error;
  const missing = await findMissingMart(validator, source).catch(() => undefined);
  if (missing === undefined) return error;
  const { mart, maker } = missing;
  const { message, extra, problems } = error;
  const why = `${mart} is the target of ${maker}, which makes it in its first run: apply ${maker} alone, run it, then apply the rest.`;
  const hint = `Run vitrina run ${maker} --wait once it is saved.`;
  return new VitrinaError(error.known, `${message} ${why}`, { hint, extra, problems, cause: error });
}

async function findMissingMart(
  { config, parts, plan, beside = [] }: Validator,
  source: SourceInspector,
): Promise<{ readonly mart: string; readonly maker: string } | undefined> {
  const named = await martReads(parts, config);
  if (named === undefined || plan.target === undefined) return undefined;
  const behind = await source.tablesBehind(named.tables);
  const missing = named.tables.filter((table) => (behind.get(table) ?? []).length === 0);
  if (missing.length === 0) return undefined;
  const names = new Set(beside.map(({ name }) => name));
  const others = [...beside, ...(await allPipelines(parts)).filter(({ name }) => !names.has(name))];
  for (const other of others.filter(({ name, create_target }) => create_target && name !== config.name)) {
    const target = parts.targets.parse(other.target_table);
    const mart = parts.targets.format(target);
    if (!missing.includes(mart)) continue;
    // A table of another database may have the name of a mart.
    return (await isInOneDatabase(parts, source, target)) ? { mart, maker: other.name } : undefined;
  }
  return undefined;
}
