import type { SourceInspector } from "../../connectors/inspector.ts";
import type { MartReads } from "../../domain/mart-graph.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import type { Target } from "../../domain/target.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import type { ApiParts } from "../api.ts";

type ReadingParts = Pick<ApiParts, "store" | "inspector" | "targets">;

/** What a pipeline reads, by the text of its query; undefined where its target or its query cannot be read. */
export async function martReads(
  { inspector, targets }: Omit<ReadingParts, "store">,
  config: PipelineConfig,
): Promise<MartReads | undefined> {
  const { reader, target } = inspectTaskPlan(config, targets);
  if (reader === undefined || target === undefined || !inspector.sourceTypes.includes(config.source_type)) {
    return undefined;
  }
  const { name: pipeline, mode, source_connection: connection } = config;
  const tables = await inspector.namedTables(config, reader.query);
  return { pipeline, mode, target: targets.format(target), connection, tables };
}

const PIPELINES_PER_PAGE = 200;

export async function allPipelines({ store }: Pick<ReadingParts, "store">): Promise<readonly PipelineConfig[]> {
  const all: PipelineConfig[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await store.pipelines.list({ limit: PIPELINES_PER_PAGE, after });
    all.push(...page.items);
    after = page.next;
  }
  return all;
}

/** The same with every view replaced by the tables behind it. What the source does not know keeps its name. */
export async function throughViews(
  source: Pick<SourceInspector, "tablesBehind">,
  all: readonly MartReads[],
): Promise<readonly MartReads[]> {
  const behind = await source.tablesBehind([...new Set(all.flatMap(({ tables }) => tables))]);
  return all.map((reads) => {
    const found = reads.tables.flatMap((name) => {
      const tables = behind.get(name) ?? [];
      return tables.length === 0 ? [name] : tables;
    });
    return { ...reads, tables: [...new Set(found)].sort() };
  });
}

/** Whether the tables of a source are in the database that targets of this kind are in. */
export async function isInOneDatabase(
  { inspector }: Pick<ReadingParts, "inspector">,
  source: SourceInspector,
  target: Target,
): Promise<boolean> {
  const found = await inspector.target(target);
  return found === undefined ? false : found.isSeenBy((mark) => source.seesMark(mark));
}
