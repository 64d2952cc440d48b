/**
 * What the author of a TypeScript or JavaScript task imports. A stable interface.
 *
 *     import { defineTask, z } from "vitrina/tasks";
 *
 *     export default defineTask({
 *       name: "shout",
 *       description: "Titles in capitals.",
 *       params: z.strictObject({ suffix: z.string().default("!") }),
 *       run: (rows, { params }) => rows.map((row) => ({ ...row, title: `${row.title}`.toUpperCase() + params.suffix })),
 *     });
 *
 * A module in a folder without `node_modules` has nothing to import from; it exports a function instead, which is
 * given the same things: `export default ({ defineTask, z, RetryLater }) => defineTask({ … })`.
 */
import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column } from "../domain/row.ts";
import { TASK_NAME } from "../domain/task-plan.ts";
import { checkColumns } from "./column-types.ts";
import type { RetryLater } from "./retry-later.ts";
import type { TaskRow } from "./row-codec.ts";

export type { Column } from "../domain/row.ts";
export { RetryLater } from "./retry-later.ts";
export type { TaskRow } from "./row-codec.ts";
export type { TaskValue } from "./value-codec.ts";
export { z };

export interface TaskContext<Params> {
  readonly params: Params;
  /** The columns of the rows given to `run`. */
  readonly columns: readonly Column[];
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
}

export interface TaskDefinition<Schema extends z.ZodType> {
  /** Lower-case letters, digits and `_`; what a pipeline writes as the body of its task. */
  readonly name: string;
  readonly description: string;
  /** None: the task takes no parameters. */
  readonly params?: Schema;
  /**
   * A list: columns added after those of the input, or replacing the type of those there. A function: all columns of
   * the result, in order. None: the columns of the input.
   */
  readonly columns?: readonly Column[] | ((input: readonly Column[], params: z.output<Schema>) => readonly Column[]);
  /** Called once per batch. It may modify the rows; a generator may yield the result. */
  run(rows: TaskRow[], context: TaskContext<z.output<Schema>>): Iterable<TaskRow> | Promise<Iterable<TaskRow>>;
}

/** Found on every task, whichever copy of this module made it. */
const TASK_MARK: unique symbol = Symbol.for("vitrina.task");

export interface Task {
  readonly [TASK_MARK]: true;
  readonly name: string;
  readonly description: string;
  readonly paramsSchema: z.ZodType;
  /** Checks the parameters and decides the columns, before any row is read. */
  prepare(params: unknown, input: readonly Column[]): PreparedTask;
}

export interface PreparedTask {
  readonly columns: readonly Column[];
  run(rows: TaskRow[], signal: AbortSignal): Iterable<TaskRow> | Promise<Iterable<TaskRow>>;
}

export function defineTask<Schema extends z.ZodType = z.ZodObject<Record<never, never>, z.core.$strict>>(
  definition: TaskDefinition<Schema>,
): Task {
  const { name, description, params: schema, columns } = definition;
  if (!TASK_NAME.test(name)) {
    const rule = "must be lower-case letters, digits and _, and begin with a letter";
    throw new VitrinaError("TASK_MODULE_INVALID", `The name of a task ${rule}; ${JSON.stringify(name)} is not.`);
  }
  const paramsSchema = schema ?? z.strictObject({});
  return {
    [TASK_MARK]: true,
    name,
    description,
    paramsSchema,
    prepare(raw, input) {
      const params = parseParams(name, paramsSchema, raw) as z.output<Schema>;
      const output = typeof columns === "function" ? columns(input, params) : addColumns(input, columns ?? []);
      return {
        columns: checkColumns(name, output),
        run: (rows, signal) => definition.run(rows, { params, columns: input, signal }),
      };
    },
  };
}

export interface TaskKit {
  readonly defineTask: typeof defineTask;
  readonly z: typeof z;
  /** Thrown by a task that has a temporary problem. */
  readonly RetryLater: typeof RetryLater;
}

/** What a module may export instead of a task. */
export type TaskFactory = (kit: TaskKit) => Task | readonly Task[];

export function isTask(value: unknown): value is Task {
  return typeof value === "object" && value !== null && TASK_MARK in value;
}

function parseParams(task: string, schema: z.ZodType, raw: unknown): unknown {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => ({
    pointer: path.map((step) => `/${String(step)}`).join(""),
    message,
  }));
  const list = problems.map(({ pointer, message }) => (pointer === "" ? message : `${pointer.slice(1)}: ${message}`));
  throw new VitrinaError("TASK_PARAMS_INVALID", `The parameters of task ${task} are not valid: ${list.join("; ")}.`, {
    problems,
  });
}

function addColumns(input: readonly Column[], added: readonly Column[]): readonly Column[] {
  const retyped = input.map((column) => added.find(({ name }) => name === column.name) ?? column);
  return [...retyped, ...added.filter(({ name }) => !input.some((column) => column.name === name))];
}
