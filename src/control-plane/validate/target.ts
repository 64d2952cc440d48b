import { randomUUID } from "node:crypto";
import type { InspectedTarget } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import type { Column } from "../../domain/row.ts";
import type { Validation } from "./operations.ts";
import type { Validator } from "./validator.ts";

/** `columns` are those of the query; what code tasks make of them only a runner knows. */
export async function checkTarget(
  { config, stored, parts, plan, findings }: Validator,
  columns: readonly Column[] | undefined,
): Promise<InspectedTarget | undefined> {
  const { target, targetPointer, transforms } = plan;
  const inspector = target === undefined ? undefined : await parts.inspector.target(target);
  if (target === undefined || inspector === undefined) return undefined;
  const check = { pointer: targetPointer, question: "whether the target fits", isEssential: true };
  const hasTransforms = transforms.length > 0;
  const inspected = await findings.attempt(check, () =>
    inspector.inspect({
      target,
      columns: hasTransforms ? undefined : columns,
      key: config.target_key,
      createTarget: config.create_target,
      addColumns: config.add_columns,
      load:
        config.mode !== "incremental"
          ? {
              kind: "replace",
              loadId: stored?.id ?? randomUUID(),
              inKeyOrder: !hasTransforms,
              deletes: config.mode === "follow",
            }
          : { kind: "upsert" },
    }),
  );
  for (const remark of parts.targets.remarksOn(targetTextOf(config, targetPointer))) {
    findings.add(remark, targetPointer, "warning");
  }
  const pointerOf = (code: string): string => (code.startsWith("KEY_") ? "/target_key" : targetPointer);
  for (const problem of inspected?.problems ?? []) findings.add(problem, pointerOf(problem.code));
  for (const problem of inspected?.warnings ?? []) findings.add(problem, pointerOf(problem.code), "warning");
  return inspected;
}

/** Rows that another pipeline wrote are not in the query of a full load, which deletes them. */
export async function checkSharing({ config, stored, parts, plan, findings }: Validator): Promise<void> {
  const target = targetTextOf(config, plan.targetPointer);
  const { items } = await parts.store.pipelines.list({ limit: 10 }, { target_table: target });
  const others = items.filter((other) => other.id !== stored?.id && (deletesOthers(config) || deletesOthers(other)));
  if (others.length === 0) return;
  const names = others.map(({ name }) => `"${name}"`).join(", ");
  const whose = deletesOthers(config)
    ? `A full load deletes what ${names} wrote`
    : `A full load of ${names} deletes its rows`;
  const shared = new VitrinaError("TARGET_SHARED", `${target} is also the target of ${names}. ${whose}.`);
  findings.add(shared, plan.targetPointer, "warning");
}

/** Comparing everything, as follow mode and a sweep do, is a full load. */
function deletesOthers({ mode, sweep }: PipelineConfig): boolean {
  return mode !== "incremental" || sweep !== null;
}

function targetTextOf({ target_table, tasks }: PipelineConfig, pointer: string): string {
  const [, index] = /^\/tasks\/(\d+)\//.exec(pointer) ?? [];
  return (index === undefined ? undefined : tasks[Number(index)]?.target_table) ?? target_table;
}

export async function describeTarget(
  { config, parts, plan: { target, transforms } }: Validator,
  columns: readonly Column[] | undefined,
  inspected: InspectedTarget | undefined,
): Promise<Validation["target"]> {
  if (target === undefined) return null;
  const table = parts.targets.format(target);
  if (inspected === undefined) {
    const isInspectable = (await parts.inspector.target(target)) !== undefined;
    return {
      table,
      exists: null,
      key: config.target_key.length > 0 ? config.target_key : null,
      will_create: null,
      missing_columns: null,
      extra_columns: null,
      note: isInspectable ? "It could not be looked at." : "Only a runner talks to a target of this kind.",
    };
  }
  const { exists, key, missing, extra, problems } = inspected;
  const isCompared = columns !== undefined && transforms.length === 0;
  const unknownColumns =
    transforms.length > 0
      ? "The columns that code tasks return are known when they run: the run says whether the target has them."
      : "The columns of the query are not known.";
  return {
    table,
    exists,
    key: [...key],
    will_create: !exists && config.create_target && problems.length === 0,
    missing_columns: isCompared ? [...missing] : null,
    extra_columns: isCompared ? [...extra] : null,
    note: isCompared ? null : unknownColumns,
  };
}
