/**
 * What a run executes: one reader query, then code transforms, then one target (SPEC R2.3). A `source_query` alone
 * becomes a plan of one step, so that there is a single execution path.
 */
import { type CodedProblem, type ErrorCode, VitrinaError } from "./error-catalogue.ts";
import { quoted } from "./quoted.ts";
import type { Target, TargetReader } from "./target.ts";

export const TASK_TYPES = ["SQL", "TYPESCRIPT", "PYTHON"] as const;
export type TaskType = (typeof TASK_TYPES)[number];
type CodeLanguage = Exclude<TaskType, "SQL">;

/** One row of `etl_pipeline_tasks`, as the meta-store or a request has it: nothing is checked yet. */
export interface PlannedTask {
  readonly order_index: number;
  readonly task_type: string;
  readonly body: string;
  readonly source_table?: string | null | undefined;
  readonly target_table?: string | null | undefined;
}

export interface TaskPlanConfig {
  /** A code language means that the plan has a task in it; SQL only means that a query comes first. */
  readonly type?: string | undefined;
  readonly source_query?: string | null | undefined;
  readonly target_table: string;
  readonly tasks?: readonly PlannedTask[] | undefined;
}

interface PlannedTransform {
  readonly language: CodeLanguage;
  /** The name of a function registered in code; never code itself. */
  readonly name: string;
  /** Checked against the task's own parameter schema by its registry; `{}` when the body gives none. */
  readonly params: unknown;
}

export interface TaskPlan {
  readonly readerQuery: string;
  readonly transforms: readonly PlannedTransform[];
  readonly target: Target;
}

/** Also how a task is named where it is defined. */
export const TASK_NAME = /^[a-z][a-z0-9_]{0,62}$/;

/** A task with the place where its author wrote it, since the plan sorts the tasks. */
type Step = PlannedTask & { readonly pointer: string };
type Report = (pointer: string, message: string, code?: ErrorCode) => void;

/** Throws with every broken rule at once: with their common code, or TASK_PLAN_INVALID if the codes differ. */
export function parseTaskPlan(config: TaskPlanConfig, targets: TargetReader): TaskPlan {
  const { reader, transforms, target, problems } = inspectTaskPlan(config, targets);
  if (reader === undefined || target === undefined || problems.length > 0) {
    const told = problems.map(({ pointer, message }) => ({ pointer, message }));
    const [code = "TASK_PLAN_INVALID", ...others] = new Set(problems.map((problem) => problem.code));
    throw new VitrinaError(
      others.length === 0 ? code : "TASK_PLAN_INVALID",
      told.map(({ message }) => message).join(" "),
      { problems: told },
    );
  }
  return {
    readerQuery: reader.query,
    transforms: transforms.map(({ language, name, params }) => ({ language, name, params })),
    target,
  };
}

/** As much of a plan as can be read, with every broken rule. */
export interface InspectedTaskPlan {
  /** `undefined` when the plan does not begin with a query. */
  readonly reader: { readonly query: string; readonly pointer: string } | undefined;
  readonly transforms: readonly (PlannedTransform & { readonly pointer: string })[];
  readonly target: Target | undefined;
  readonly targetPointer: string;
  readonly problems: readonly CodedProblem[];
}

export function inspectTaskPlan(config: TaskPlanConfig, targets: TargetReader): InspectedTaskPlan {
  const problems: CodedProblem[] = [];
  const report: Report = (pointer, message, code = "TASK_PLAN_INVALID") => problems.push({ code, pointer, message });

  const [reader = sourceQueryStep(config, report), ...followers] = orderTasks(config.tasks ?? [], report);
  if (!isBlank(reader.task_type) && reader.task_type !== "SQL") {
    report(`${reader.pointer}/task_type`, `The first task must be SQL, the reader, not ${quoted(reader.task_type)}.`);
  }
  const transforms = followers.flatMap((step) => parseTransform(step, report));
  checkType(config, followers, report);
  const isQuery = reader.task_type === "SQL" && !isBlank(reader.body);
  const place = reader.pointer === "" ? "/source_query" : `${reader.pointer}/body`;
  return {
    reader: isQuery ? { query: reader.body, pointer: place } : undefined,
    transforms,
    ...parsePlanTarget(config, [reader, ...followers], targets, report),
    problems,
  };
}

function sourceQueryStep({ source_query }: TaskPlanConfig, report: Report): Step {
  const body = source_query ?? "";
  if (isBlank(body)) {
    report("/source_query", "The pipeline has neither a source_query nor tasks.", "SOURCE_QUERY_MISSING");
  }
  return { order_index: 1, task_type: "SQL", body, pointer: "" };
}

function checkType({ type = "SQL" }: TaskPlanConfig, followers: readonly Step[], report: Report): void {
  if (!isCodeLanguage(type) || followers.some(({ task_type }) => task_type === type)) return;
  report("/type", `A pipeline of type ${type} must have a ${type} task after its query; this one has none.`);
}

/** Within 1…n and without repeats implies without gaps. */
function orderTasks(tasks: readonly PlannedTask[], report: Report): Step[] {
  const seen = new Set<number>();
  for (const [position, { order_index, task_type, body, source_table }] of tasks.entries()) {
    const pointer = `/tasks/${position}`;
    if (!Number.isInteger(order_index) || order_index < 1 || order_index > tasks.length) {
      const rule = `The order_index of ${tasks.length} task(s) must run from 1 to ${tasks.length} without gaps`;
      report(`${pointer}/order_index`, `${rule}; ${order_index} does not fit.`);
    } else if (seen.has(order_index)) {
      report(`${pointer}/order_index`, `The order_index ${order_index} is used more than once.`);
    }
    seen.add(order_index);
    if (isBlank(task_type)) report(`${pointer}/task_type`, `Task ${order_index} has no task_type.`);
    if (isBlank(body)) report(`${pointer}/body`, `Task ${order_index} has no body.`);
    if (source_table !== undefined && source_table !== null) {
      const rule = "but the query of the first task says what is read: leave source_table out";
      report(`${pointer}/source_table`, `Task ${order_index} has a source_table, ${rule}.`);
    }
  }
  const steps = tasks.map((task, position) => ({ ...task, pointer: `/tasks/${position}` }));
  return steps.sort((a, b) => a.order_index - b.order_index);
}

/** The transform, or nothing where a problem was reported. */
function parseTransform(step: Step, report: Report): InspectedTaskPlan["transforms"][number][] {
  const { task_type: language, order_index } = step;
  if (isBlank(language)) return [];
  if (!isCodeLanguage(language)) {
    const rule = "every task after the first must be TYPESCRIPT or PYTHON";
    report(`${step.pointer}/task_type`, `Task ${order_index} is ${quoted(language)}, but ${rule}.`);
    return [];
  }
  const call = parseCall(step, report);
  return call === undefined ? [] : [{ language, ...call, pointer: `${step.pointer}/body` }];
}

function parseCall(
  { body, order_index, pointer }: Step,
  report: Report,
): Omit<PlannedTransform, "language"> | undefined {
  const call = body.trim();
  if (call === "") return undefined;
  const name = call.replace(/\s.*$/s, "");
  const json = call.slice(name.length);
  if (!TASK_NAME.test(name)) {
    const rule = "must name a registered task (lower-case letters, digits and _), then optional JSON parameters";
    report(`${pointer}/body`, `The body of task ${order_index} ${rule}; it begins with ${quoted(name)}.`);
    return undefined;
  }
  try {
    return { name, params: json === "" ? {} : JSON.parse(json) };
  } catch {
    report(`${pointer}/body`, `The parameters of task ${order_index} are not valid JSON.`);
    return undefined;
  }
}

function parsePlanTarget(
  config: TaskPlanConfig,
  steps: readonly Step[],
  targets: TargetReader,
  report: Report,
): Pick<InspectedTaskPlan, "target" | "targetPointer"> {
  const overrides = steps.flatMap(({ target_table, order_index, pointer }, position) => {
    if (target_table === undefined || target_table === null) return [];
    if (position === steps.length - 1) return [{ text: target_table, pointer: `${pointer}/target_table` }];
    report(`${pointer}/target_table`, `Task ${order_index} has a target_table, but only the last task may have one.`);
    return [];
  });
  const [final = { text: config.target_table, pointer: "/target_table" }] = overrides;
  try {
    return { target: targets.require(final.text), targetPointer: final.pointer };
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    report(final.pointer, error.message, "TARGET_NOT_ALLOWED");
    return { target: undefined, targetPointer: final.pointer };
  }
}

function isCodeLanguage(taskType: string): taskType is CodeLanguage {
  return taskType !== "SQL" && (TASK_TYPES as readonly string[]).includes(taskType);
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
