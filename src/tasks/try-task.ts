/**
 * For testing a task without the platform. The rows go the same way as in a pipeline: as PostgreSQL's texts, through
 * the task, and back; so a missing column or a value of the wrong type is found here, too.
 *
 *     import { runTask } from "vitrina/tasks/try";
 *
 *     const [row] = await runTask(shout, [{ title: "Dune" }], { suffix: "!" });
 */
import type { Column } from "../domain/row.ts";
import { defineTask, isTask, RetryLater, type Task, type TaskFactory, z } from "./define-task.ts";
import { rowDecoder, rowEncoder, type TaskRow } from "./row-codec.ts";
import { openTransform } from "./typescript/transform.ts";
import type { TaskValue } from "./value-codec.ts";

export interface RunTaskOptions {
  /** Types that cannot be inferred from the first value of a column, e.g. `[{ name: "rating", type: "numeric(3,1)" }]`. */
  readonly columns?: readonly Column[];
  readonly signal?: AbortSignal;
}

const TIME_LIMIT_MS = 60_000;

export async function runTask(
  task: Task | TaskFactory,
  rows: readonly TaskRow[],
  params: unknown = {},
  { columns = [], signal = new AbortController().signal }: RunTaskOptions = {},
): Promise<TaskRow[]> {
  const input = inferColumns(rows, columns);
  const transform = openTransform(theTask(task), params, input, TIME_LIMIT_MS);
  const given = rows.map((row) => ({ ...Object.fromEntries(input.map(({ name }) => [name, null])), ...row }));
  const texts = rowEncoder("given to runTask", input, input)(given);
  return rowDecoder(transform.columns)(await transform.apply(texts, signal));
}

function theTask(task: Task | TaskFactory): Task {
  const [first] = typeof task === "function" ? [task({ defineTask, z, RetryLater })].flat() : [task];
  if (!isTask(first)) throw new TypeError("runTask needs what defineTask returned, or the function that calls it");
  return first;
}

function inferColumns(rows: readonly TaskRow[], given: readonly Column[]): Column[] {
  const names = new Set([...rows.flatMap((row) => Object.keys(row)), ...given.map(({ name }) => name)]);
  return [...names].map((name) => {
    const values = rows.map((row) => row[name]);
    return given.find((column) => column.name === name) ?? { name, type: firstType(values) };
  });
}

function firstType(values: readonly unknown[]): string {
  const value = values.find((each) => each !== null && each !== undefined) as TaskValue | undefined;
  if (Array.isArray(value)) return `${firstType(value)}[]`;
  const types: Readonly<Record<string, string>> = {
    boolean: "boolean",
    number: "double precision",
    bigint: "bigint",
    object: "jsonb",
  };
  return types[typeof value] ?? "text";
}
