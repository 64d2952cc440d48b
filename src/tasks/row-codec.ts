import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column, Row } from "../domain/row.ts";
import { codecFor, type TaskValue, WrongValue } from "./value-codec.ts";

/** A row as the author of a task sees it: values by column name. */
export type TaskRow = Record<string, TaskValue>;

/** Chooses each column's codec once; what it returns makes the row objects of one batch. */
export function rowDecoder(columns: readonly Column[]): (rows: readonly Row[]) => TaskRow[] {
  const fields = columns.map(({ name, type }, index) => ({ name, index, codec: codecFor(type) }));
  return (rows) =>
    rows.map((row) => {
      const values: TaskRow = {};
      for (const { name, index, codec } of fields) {
        const text = row[index] ?? null;
        values[name] = text === null ? null : codec.decode(text);
      }
      return values;
    });
}

/** The reverse. For a row without the declared shape, the error names its number, from 1, and its column. */
export function rowEncoder(
  task: string,
  columns: readonly Column[],
  input: readonly Column[],
): (rows: Iterable<unknown>) => Row[] {
  const codecs = columns.map(({ name, type }) => ({ name, codec: codecFor(type) }));
  // A column that the task leaves out may still be in the rows it was given.
  const known = new Set([...columns, ...input].map(({ name }) => name));

  const encodeRow = (row: object): Row => {
    const texts = codecs.map(({ name, codec }) => encodeValue(row as TaskRow, name, codec));
    const keys = Object.keys(row);
    if (keys.length !== texts.length) {
      const unknown = keys.find((key) => !known.has(key));
      if (unknown !== undefined) throw new WrongColumn(unknown, "the task does not declare this column");
    }
    return texts;
  };

  return (rows) => {
    const encoded: Row[] = [];
    for (const row of rows) {
      try {
        if (typeof row !== "object" || row === null) throw new WrongValue("it is not an object");
        encoded.push(encodeRow(row));
      } catch (error) {
        throw describeWrong(task, encoded.length + 1, error);
      }
    }
    return encoded;
  };
}

class WrongColumn extends WrongValue {
  readonly column: string;
  constructor(column: string, message: string) {
    super(message);
    this.column = column;
  }
}

function encodeValue(row: TaskRow, name: string, codec: { encode(value: unknown): string }): string | null {
  const value = row[name];
  if (value === null) return null;
  if (value === undefined) throw new WrongColumn(name, "there is no value (null means: none)");
  try {
    return codec.encode(value);
  } catch (error) {
    throw error instanceof WrongValue ? new WrongColumn(name, error.message) : error;
  }
}

function describeWrong(task: string, rowNumber: number, error: unknown): unknown {
  if (!(error instanceof WrongValue)) return error;
  const place = error instanceof WrongColumn ? `, column "${error.column}"` : "";
  return new VitrinaError("TASK_RESULT_INVALID", `Task ${task} returned row ${rowNumber}${place}: ${error.message}.`);
}
