import type { FollowPlan, ImagesOf, SourceInspector } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { relationName } from "../../domain/relation-name.ts";
import { type InspectedTaskPlan, inspectTaskPlan } from "../../domain/task-plan.ts";
import type { ApiParts } from "../api.ts";
import type { PlanAnswer } from "./operations.ts";

/** A plan, and the key that it leads to. */
export interface KeyedPlan {
  readonly key: readonly string[];
  readonly plan: FollowPlan;
}

/** As a run would plan it; throws where there is no query, no key, or the source refuses the query. */
export async function planFor(parts: ApiParts, source: SourceInspector, config: PipelineConfig): Promise<KeyedPlan> {
  const taskPlan = inspectTaskPlan(config, parts.targets);
  if (taskPlan.reader === undefined) {
    throw new VitrinaError("TASK_PLAN_INVALID", `${config.name} does not begin with a query.`);
  }
  const { query } = taskPlan.reader;
  const { columns, problems } = await source.examine(query);
  const [problem] = problems;
  if (problem !== undefined) throw problem;
  const key = await keyOf(parts, config, taskPlan, columns);
  const plan = await source.followPlan({ query, columns, key, tables: config.follow.tables });
  return { key, plan };
}

/** `target_key`, or that of the target as it is. */
async function keyOf(
  { inspector }: ApiParts,
  config: PipelineConfig,
  { target, transforms }: InspectedTaskPlan,
  columns: Awaited<ReturnType<SourceInspector["examine"]>>["columns"],
): Promise<readonly string[]> {
  if (config.target_key.length > 0 || target === undefined) return config.target_key;
  const found = await inspector.target(target);
  const inspected = await found?.inspect({
    target,
    columns: transforms.length > 0 ? undefined : columns,
    key: [],
    createTarget: config.create_target,
    addColumns: config.add_columns,
    load: { kind: "upsert" },
  });
  return inspected?.key ?? [];
}

/** The whole answer about a pipeline. What takes too long is left open. */
export async function describePlan(
  source: SourceInspector,
  { name: pipeline, mode }: PipelineConfig,
  { key, plan }: KeyedPlan,
): Promise<PlanAnswer> {
  const isRefused = plan.refusals.length > 0;
  const recording = isRefused ? undefined : await source.changesState(plan.tables);
  const indexes = isRefused ? [] : await source.followIndexes(plan);
  const tables = plan.tables.map(({ schema, name, imageColumns, readColumns, change }) => {
    const table = relationName({ schema, name });
    const ofTable = indexes.filter((one) => one.table === table);
    const recorded = recording?.tables.find((one) => one.table === table);
    return {
      table,
      on_change: change.kind,
      statement: change.kind === "keys" ? change.statement(named) : null,
      recorded_columns: imageColumns.map((column) => ({ ...column })),
      read_columns: [...readColumns],
      recording: recorded?.state ?? null,
      recording_problem: recorded?.reason ?? null,
      missing_indexes: ofTable.flatMap(({ statement }) => statement ?? []),
      whole_tables: ofTable.flatMap(({ scans, why }) => (why === null ? [] : [`All of ${scans} is read. ${why}`])),
    };
  });
  return {
    pipeline,
    mode,
    key: [...key],
    tables,
    refusals: plan.refusals.map(({ table, message, wayOut, place }) => ({ table, message, way_out: wayOut, ...place })),
    warnings: [...plan.warnings, ...(recording?.warnings ?? [])],
    query_for_keys: isRefused ? null : plan.restrictedTo([key.map(() => "…")]),
  };
}

/** For people: the rows themselves are only in a round. */
const named: ImagesOf = (table) => ({
  changed: `changed(${relationName(table)})`,
  old: `old(${relationName(table)})`,
});
