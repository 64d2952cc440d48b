import type { SourceInspector } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { cycleThrough, type MartReads } from "../../domain/mart-graph.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { allPipelines, isInOneDatabase, martReads, throughViews } from "../graph/mart-reads.ts";
import type { Validator } from "./validator.ts";

/**
 * A mart that is made from itself, directly or through others, would never come to rest if one of them follows changes:
 * that is an error. Where each runs only when it is told to, it may be meant, and is a warning.
 */
export async function checkCycle(validator: Validator, source: SourceInspector): Promise<void> {
  const { config, parts, plan, findings } = validator;
  const pointer = plan.reader?.pointer ?? "";
  const check = { pointer, question: "whether the mart is made from itself" };
  const cycle = await findings.attempt(check, () => findCycle(validator, source));
  if (cycle === undefined || cycle === "none") return;
  const steps = cycle.map(({ pipeline, target }, place) => {
    const read = cycle[place + 1]?.target ?? cycle[0].target;
    return `${pipeline} makes ${target} from ${read}`;
  });
  const target = plan.target === undefined ? config.target_table : parts.targets.format(plan.target);
  const problem = new VitrinaError("FOLLOW_CYCLE", `${target} is made from itself: ${steps.join(", and ")}.`);
  findings.add(problem, pointer, cycle.some(({ mode }) => mode === "follow") ? "error" : "warning");
}

type FoundCycle = ReturnType<typeof cycleThrough>;

async function findCycle(validator: Validator, source: SourceInspector): Promise<NonNullable<FoundCycle> | "none"> {
  const { config, parts, beside = [] } = validator;
  const named = await martReads(parts, config);
  if (named === undefined) return "none";
  const [own = named] = await throughViews(source, [named]);
  // Nearly every mart is made from tables alone: then nobody else has to be looked at.
  if (!own.tables.some((table) => mayBeMart(validator, table))) return "none";
  const stored = await allPipelines(parts);
  const names = new Set([config.name, ...beside.map(({ name }) => name)]);
  const others = [
    ...beside.filter(({ name }) => name !== config.name),
    ...stored.filter(({ name }) => !names.has(name)),
  ];
  const cycle = cycleThrough(own, await readsOf(validator, source, others));
  if (cycle === undefined) return "none";
  return (await isWithinOneDatabase(validator, source, cycle)) ? cycle : "none";
}

function mayBeMart({ parts: { targets } }: Validator, table: string): boolean {
  try {
    return targets.isAllowed(targets.parse(table));
  } catch (error) {
    if (error instanceof VitrinaError) return false;
    throw error;
  }
}

/** Through views where they are in the source that is open anyway. */
async function readsOf(
  { config, parts }: Validator,
  source: SourceInspector,
  others: readonly PipelineConfig[],
): Promise<readonly MartReads[]> {
  const isBeside = ({ connection }: MartReads): boolean => connection === config.source_connection;
  const reads = (await Promise.all(others.map((other) => martReads(parts, other)))).flatMap((one) => one ?? []);
  return [...(await throughViews(source, reads.filter(isBeside))), ...reads.filter((one) => !isBeside(one))];
}

/** A table of another database may have the name of a mart. */
async function isWithinOneDatabase(
  { config, parts, plan }: Validator,
  source: SourceInspector,
  cycle: readonly MartReads[],
): Promise<boolean> {
  const { target } = plan;
  if (target === undefined || !(await isInOneDatabase(parts, source, target))) return false;
  const further = new Set(cycle.map(({ connection }) => connection));
  further.delete(config.source_connection);
  for (const connection of further) {
    const other = await parts.inspector.source({ ...config, source_connection: connection });
    try {
      if (!(await isInOneDatabase(parts, other, target))) return false;
    } finally {
      await other.close();
    }
  }
  return true;
}
