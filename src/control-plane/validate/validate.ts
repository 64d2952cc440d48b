import type { Inspector, SourceInspector } from "../../connectors/inspector.ts";
import type { RegisteredTask } from "../../domain/runner.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import { configurationProblems } from "../pipelines/check-configuration.ts";
import { Findings } from "./findings.ts";
import type { Validation } from "./operations.ts";
import { type CheckedReading, checkReading } from "./reading.ts";
import { checkTarget, describeTarget } from "./target.ts";
import { taskProblems } from "./task-problems.ts";
import { checkUnseen, notesOf } from "./unseen.ts";
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
  { plan, findings }: Validator,
  source: SourceInspector,
): Promise<CheckedQuery | undefined> {
  if (plan.reader === undefined) return undefined;
  const { query: text, pointer } = plan.reader;
  const check = { pointer, question: "what the query does", isEssential: true };
  const examined = await findings.attempt(check, () => source.examine(text));
  if (examined === undefined) return undefined;
  for (const problem of examined.problems) findings.add(problem, pointer);
  return { text, columns: examined.columns, isUsable: examined.problems.length === 0 };
}
