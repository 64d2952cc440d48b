import { type Problem, VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { parseSchedule } from "../../domain/schedule.ts";
import type { TargetAllowList } from "../../domain/target.ts";
import { parseTaskPlan } from "../../domain/task-plan.ts";
import { invalidRequest } from "../validation.ts";

interface Rule {
  /** The fields that the rule looks at. */
  readonly fields: readonly (keyof PipelineConfig)[];
  readonly findProblems: (config: PipelineConfig, targets: TargetAllowList) => readonly Problem[];
}

const RULES: readonly Rule[] = [
  { fields: ["source_query", "target_table", "tasks"], findProblems: planProblems },
  { fields: ["schedule_interval"], findProblems: scheduleProblems },
  { fields: ["mode", "incremental_key", "incremental_id_key"], findProblems: incrementalProblems },
  { fields: ["target_options", "target_table", "tasks"], findProblems: optionProblems },
];

/**
 * The rules that span several fields, or need the settings. All mistakes are reported at once. A change is held only
 * against the rules it touches, so that a pipeline whose target is no longer allowed can still be disabled.
 */
export function checkConfiguration(config: PipelineConfig, targets: TargetAllowList, change: object = config): void {
  const problems = RULES.filter(({ fields }) => fields.some((field) => field in change)).flatMap(({ findProblems }) =>
    findProblems(config, targets),
  );
  if (problems.length > 0) throw invalidRequest("body", problems);
}

function planProblems(config: PipelineConfig, targets: TargetAllowList): readonly Problem[] {
  return problemsOf("/target_table", () => parseTaskPlan(config, targets));
}

function scheduleProblems({ schedule_interval }: PipelineConfig): readonly Problem[] {
  if (schedule_interval === null) return [];
  return problemsOf("/schedule_interval", () => parseSchedule(schedule_interval));
}

function incrementalProblems({ mode, incremental_key, incremental_id_key }: PipelineConfig): readonly Problem[] {
  if (mode === "incremental" && incremental_key === null) {
    return [{ pointer: "/incremental_key", message: "An incremental pipeline needs an incremental_key." }];
  }
  if (incremental_id_key !== null && incremental_key === null) {
    return [{ pointer: "/incremental_id_key", message: "It only makes sense beside an incremental_key." }];
  }
  return [];
}

function optionProblems(config: PipelineConfig, targets: TargetAllowList): readonly Problem[] {
  if (Object.keys(config.target_options).length === 0) return [];
  if (planProblems(config, targets).length > 0 || parseTaskPlan(config, targets).target.kind === "elasticsearch")
    return [];
  return [{ pointer: "/target_options", message: "Only an index has options: leave them out for a table." }];
}

function problemsOf(pointer: string, parse: () => unknown): readonly Problem[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    return error.problems.length > 0 ? error.problems : [{ pointer, message: error.message }];
  }
}
