import { type CodedProblem, type Problem, VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { parseSchedule } from "../../domain/schedule.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import type { ApiParts } from "../api.ts";
import { formProblems } from "../validation.ts";

/** What the rules consult. */
type RuleParts = Pick<ApiParts, "targets" | "inspector">;

interface ConfigurationRule {
  /** The fields that the rule looks at. */
  readonly fields: readonly (keyof PipelineConfig)[];
  readonly findProblems: (config: PipelineConfig, parts: RuleParts) => readonly CodedProblem[];
}

const RULES: readonly ConfigurationRule[] = [
  { fields: ["source_type"], findProblems: sourceProblems },
  { fields: ["type", "source_query", "target_table", "tasks"], findProblems: planProblems },
  { fields: ["schedule_interval"], findProblems: (config) => scheduleProblems(config, "schedule_interval") },
  { fields: ["sweep"], findProblems: (config) => scheduleProblems(config, "sweep") },
  { fields: ["mode", "incremental_key", "incremental_id_key"], findProblems: incrementalProblems },
  { fields: ["target_options", "target_table", "tasks", "mode", "sweep"], findProblems: optionProblems },
];

/**
 * The rules that span several fields, or need the settings. All mistakes are reported at once. A change is held only
 * against the rules it touches, so that a pipeline whose target is no longer allowed can still be disabled.
 */
export function configurationProblems(
  config: PipelineConfig,
  parts: RuleParts,
  change: object = config,
): CodedProblem[] {
  return RULES.filter(({ fields }) => fields.some((field) => field in change)).flatMap(({ findProblems }) =>
    findProblems(config, parts),
  );
}

function sourceProblems({ source_type }: PipelineConfig, { inspector }: RuleParts): readonly CodedProblem[] {
  const { sourceTypes: known } = inspector;
  if (known.includes(source_type)) return [];
  const message = `It must be ${known.length > 1 ? "one of " : ""}${known.join(", ")}.`;
  return [{ code: "INVALID_REQUEST", pointer: "/source_type", message }];
}

function planProblems(config: PipelineConfig, parts: RuleParts): readonly CodedProblem[] {
  return inspectTaskPlan(config, parts.targets).problems;
}

/** The reader's query, judged by its text alone. */
export async function queryProblems(config: PipelineConfig, parts: RuleParts): Promise<readonly Problem[]> {
  const { reader } = inspectTaskPlan(config, parts.targets);
  if (reader === undefined || sourceProblems(config, parts).length > 0) return [];
  try {
    await parts.inspector.checkQuery(config, reader.query);
    return [];
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    const problems = error.problems.length > 0 ? error.problems : [{ message: error.message }];
    return problems.map((problem) => ({ ...problem, pointer: reader.pointer }));
  }
}

function scheduleProblems(config: PipelineConfig, field: "schedule_interval" | "sweep"): readonly CodedProblem[] {
  const schedule = config[field];
  if (schedule === null) return [];
  try {
    parseSchedule(schedule);
    return [];
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    return [{ code: "SCHEDULE_INVALID", pointer: `/${field}`, message: error.message }];
  }
}

function incrementalProblems({ mode, incremental_key, incremental_id_key }: PipelineConfig): readonly CodedProblem[] {
  const code = "CURSOR_UNUSABLE";
  if (mode === "incremental" && incremental_key === null) {
    return [{ code, pointer: "/incremental_key", message: "An incremental pipeline needs an incremental_key." }];
  }
  if (incremental_id_key !== null && incremental_key === null) {
    return [{ code, pointer: "/incremental_id_key", message: "It only makes sense beside an incremental_key." }];
  }
  return [];
}

function optionProblems(config: PipelineConfig, parts: RuleParts): readonly CodedProblem[] {
  const { target } = inspectTaskPlan(config, parts.targets);
  if (target === undefined) return [];
  return parts.targets.optionProblems(target, config, (schema, options) =>
    formProblems(schema, options).map(({ pointer, message }) => ({
      code: "INVALID_REQUEST",
      pointer: `/target_options${pointer}`,
      message,
    })),
  );
}
