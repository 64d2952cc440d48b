import { type Problem, VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import { parseSchedule } from "../../domain/schedule.ts";
import type { TargetAllowList } from "../../domain/target.ts";
import { parseTaskPlan } from "../../domain/task-plan.ts";
import { checkQuery, type GuardRules } from "../../sql-guard/guard.ts";
import { invalidRequest } from "../validation.ts";

/** What the settings allow a pipeline to read and to write. */
export interface Allowed {
  readonly targets: TargetAllowList;
  readonly guard: GuardRules;
}

interface Rule {
  /** The fields that the rule looks at. */
  readonly fields: readonly (keyof PipelineConfig)[];
  readonly findProblems: (config: PipelineConfig, allowed: Allowed) => readonly Problem[] | Promise<readonly Problem[]>;
}

const RULES: readonly Rule[] = [
  { fields: ["source_query", "target_table", "tasks"], findProblems: planProblems },
  { fields: ["source_query", "tasks"], findProblems: queryProblems },
  { fields: ["schedule_interval"], findProblems: scheduleProblems },
  { fields: ["mode", "incremental_key", "incremental_id_key"], findProblems: incrementalProblems },
];

/**
 * The rules that span several fields, or need the settings. All mistakes are reported at once. A change is held only
 * against the rules it touches, so that a pipeline whose target is no longer allowed can still be disabled.
 */
export async function checkConfiguration(
  config: PipelineConfig,
  allowed: Allowed,
  change: object = config,
): Promise<void> {
  const touched = RULES.filter(({ fields }) => fields.some((field) => field in change));
  const problems = (await Promise.all(touched.map(({ findProblems }) => findProblems(config, allowed)))).flat();
  if (problems.length > 0) throw invalidRequest("body", problems);
}

function planProblems(config: PipelineConfig, { targets }: Allowed): Promise<readonly Problem[]> {
  return problemsOf("/target_table", () => parseTaskPlan(config, targets));
}

/** The reader's query, as far as its text tells. What it reaches in the source is found out when it runs. */
async function queryProblems({ source_query, tasks }: PipelineConfig, { guard }: Allowed): Promise<readonly Problem[]> {
  const [first] = tasks.map((task, position) => ({ ...task, position })).sort((a, b) => a.order_index - b.order_index);
  if (first !== undefined && first.task_type !== "SQL") return [];
  const query = first === undefined ? source_query : first.body;
  if (query.trim() === "") return [];
  const pointer = first === undefined ? "/source_query" : `/tasks/${first.position}/body`;
  const problems = await problemsOf(pointer, () => checkQuery(query, guard));
  return problems.map(({ message }) => ({ pointer, message }));
}

async function scheduleProblems({ schedule_interval }: PipelineConfig): Promise<readonly Problem[]> {
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

async function problemsOf(pointer: string, parse: () => unknown): Promise<readonly Problem[]> {
  try {
    await parse();
    return [];
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    return error.problems.length > 0 ? error.problems : [{ pointer, message: error.message }];
  }
}
