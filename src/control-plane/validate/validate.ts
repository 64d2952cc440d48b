import type { Inspector, SourceInspector } from "../../connectors/inspector.ts";
import { type CodedProblem, VitrinaError } from "../../domain/error-catalogue.ts";
import type { RegisteredTask } from "../../domain/runner.ts";
import { type InspectedTaskPlan, inspectTaskPlan } from "../../domain/task-plan.ts";
import { isNumberType } from "../../domain/watermark.ts";
import { configurationProblems } from "../pipelines/check-configuration.ts";
import { checkCycle } from "./cycle.ts";
import { Findings } from "./findings.ts";
import { checkFollow } from "./follow.ts";
import { namingMissingMart } from "./missing-mart.ts";
import type { Validation } from "./operations.ts";
import { type CheckedReading, checkReading } from "./reading.ts";
import { checkSharing, checkTarget, describeTarget } from "./target.ts";
import type { CheckedQuery, ValidateParts, ValidateQuestion, Validator } from "./validator.ts";

/**
 * Says everything that can be said about a configuration without running it. What depends on a step that failed is left
 * out; everything else is still checked.
 */
export async function validate(parts: ValidateParts, question: ValidateQuestion): Promise<Validation> {
  const { config } = question;
  const findings = new Findings();
  const plan = inspectTaskPlan(config, parts.targets);
  const validator: Validator = { ...question, parts, plan, findings };
  for (const problem of configurationProblems(config, parts)) findings.addProblem(problem);
  for (const problem of taskProblems(plan, await registeredTasks(parts))) findings.addProblem(problem);

  const source = await openSource(validator);
  try {
    const query = source === undefined ? undefined : await checkSourceQuery(validator, source);
    const target = await checkTarget(validator, query?.columns);
    await checkSharing(validator);
    if (source !== undefined && query !== undefined) {
      await checkCycle(validator, source);
      await checkFollow(validator, source, query, target?.key ?? config.target_key, "whole");
    }
    const reading: CheckedReading =
      source === undefined || query === undefined || !query.isUsable
        ? { reading: null, estimatedRows: null }
        : await checkReading(validator, source, query, target);
    const unseen = source === undefined || query === undefined ? null : await checkUnseen(validator, source, query);
    return {
      valid: !findings.hasErrors,
      problems: findings.all,
      columns: query === undefined ? null : query.columns.map(({ name, type }) => ({ name, type })),
      target: await describeTarget(validator, query?.columns, target),
      reading: reading.reading,
      writing: target?.strategy === undefined ? null : { strategy: target.strategy },
      unseen_tables: unseen,
      notes: notesOf(validator, query),
      estimated_rows: reading.estimatedRows,
    };
  } finally {
    await source?.close();
  }
}

async function registeredTasks({ store }: ValidateParts): Promise<readonly RegisteredTask[] | undefined> {
  const [runners, tasks] = await Promise.all([store.runners.list(), store.runners.listTasks()]);
  return runners.some(({ alive }) => alive) ? tasks : undefined;
}

/** `undefined` when there is none, for a reason that has been added. */
export async function openSource(
  { config, parts: { inspector }, findings }: Validator,
  open: Inspector["source"] = inspector.source,
): Promise<SourceInspector | undefined> {
  // The rules of the configuration say so.
  if (!inspector.sourceTypes.includes(config.source_type)) return undefined;
  const check = { pointer: "/source_connection", question: "what the source says" };
  return findings.attempt(check, () => open(config));
}

/** What the guard refuses is not even planned. */
export async function checkSourceQuery(
  validator: Validator,
  source: SourceInspector,
): Promise<CheckedQuery | undefined> {
  const { plan, findings } = validator;
  if (plan.reader === undefined) return undefined;
  const { query: text, pointer } = plan.reader;
  const check = { pointer, question: "what the query does", isEssential: true };
  const examined = await findings.attempt(check, () =>
    source.examine(text).catch(async (error: unknown) => {
      throw await namingMissingMart(validator, source, error);
    }),
  );
  if (examined === undefined) return undefined;
  for (const problem of examined.problems) findings.add(problem, pointer);
  return { text, columns: examined.columns, isUsable: examined.problems.length === 0 };
}

/** Changes that an incremental load does not notice: not a fault of the configuration, but people must know. */
export async function checkUnseen(
  { config, findings }: Validator,
  source: SourceInspector,
  { text }: CheckedQuery,
): Promise<string[] | null> {
  const { mode, incremental_key: key } = config;
  if (mode !== "incremental" || key === null) return null;
  const check = { pointer: "/incremental_key", question: "which changes are not seen" };
  const unseen = await findings.attempt(check, () => source.unseenTables(text, key));
  if (unseen === undefined) return null;
  if (unseen.length > 0) {
    const message = `Changes of ${unseen.join(", ")} do not move "${key}", so no run notices them.`;
    findings.add(new VitrinaError("CHANGES_UNSEEN", message), check.pointer, "warning");
  }
  return [...unseen];
}

function notesOf({ config }: Validator, query: CheckedQuery | undefined): string[] {
  const { mode, incremental_key: key, lookback_numbers } = config;
  if (mode !== "incremental") return [];
  const type = query?.columns.find(({ name }) => name === key)?.type;
  const ahead = `If programs give out blocks of "${key}" ahead by themselves, set lookback_numbers to more than are given out while one of them is kept back.`;
  return [
    "Rows that are deleted in the source stay in the target; a full load removes them, and reconcile shows them.",
    `A row that changes while its "${key}" stays as it is keeps its old values in the target.`,
    ...(type !== undefined && isNumberType(type) && lookback_numbers === 0 ? [ahead] : []),
  ];
}

/** `registered`: by the living runners; `undefined` if there is none, since then nothing is known. */
function taskProblems(
  { transforms }: InspectedTaskPlan,
  registered: readonly Pick<RegisteredTask, "name" | "language">[] | undefined,
): readonly CodedProblem[] {
  if (registered === undefined) return [];
  return transforms
    .filter(({ name, language }) => !registered.some((task) => task.name === name && task.language === language))
    .map(({ name, language, pointer }) => ({
      code: "TASK_UNKNOWN",
      pointer,
      message: `No runner has a ${language} task "${name}".`,
    }));
}
