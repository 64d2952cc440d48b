import { createHash } from "node:crypto";
import type { Column, Row } from "../../domain/row.ts";
import type { RejectedRow, TargetKey } from "../sink.ts";
import { fieldType, MalformedValue } from "./field-types.ts";

/** What a row does to the index: writes its document, or deletes it. A key without a row deletes it, too. */
export interface Operation {
  /** Undefined for a key without one. */
  readonly row: Row | undefined;
  readonly id: string;
  /** One line of JSON; undefined when the document is to be deleted. */
  readonly document: string | undefined;
  /** The lines of a bulk request, each with its line break. */
  readonly lines: string;
  readonly bytes: number;
}

export interface RowOperation extends Operation {
  readonly row: Row;
}

interface EncodedBatch {
  /** The last row of each key. */
  readonly operations: readonly RowOperation[];
  /** For the keys that no row has, not even a refused one. */
  readonly deletions: readonly Operation[];
  readonly duplicates: number;
  readonly rejects: readonly RejectedRow[];
}

export type EncodeBatch = (rows: readonly Row[], version: bigint, keys?: readonly TargetKey[]) => EncodedBatch;

export function documentEncoder(
  columns: readonly Column[],
  key: readonly string[],
  deleteWhen: string | undefined,
): EncodeBatch {
  const fields = columns.map((column, index) => ({
    // The first column brings the brace, every other one a comma.
    prefix: `${index === 0 ? "{" : ","}${JSON.stringify(column.name)}:`,
    toJson: fieldType(column).toJson,
  }));
  const keyAt = key.map((name) => columns.findIndex((column) => column.name === name));
  const deletedAt = columns.findIndex(({ name }) => name === deleteWhen);

  const encodeDocument = (row: Row): string => {
    let text = "";
    for (let index = 0; index < fields.length; index++) {
      const { prefix, toJson } = fields[index] as (typeof fields)[number];
      const value = row[index] ?? null;
      text += prefix + (value === null ? "null" : toJson(value));
    }
    return `${text}}\n`;
  };

  const keyOf = (row: Row): Row => keyAt.map((index) => row[index] ?? null);

  const encodeRow = (row: Row, version: bigint): RowOperation => {
    const id = documentId(keyOf(row));
    const isDeleted = deletedAt >= 0 && /^t/.test(row[deletedAt] ?? "");
    return { row, ...operationOn(id, version, isDeleted ? undefined : encodeDocument(row)) };
  };

  return (rows, version, keys = []) => {
    const latest = new Map<string, RowOperation>();
    const rejects: RejectedRow[] = [];
    for (const row of rows) {
      try {
        const operation = encodeRow(row, version);
        latest.set(operation.id, operation);
      } catch (error) {
        if (!(error instanceof MalformedValue)) throw error;
        rejects.push({
          row,
          code: "ROW_REFUSED",
          error: `A value cannot be written: ${error.message}.`,
          reason: "A value cannot be written.",
        });
      }
    }
    const operations = [...latest.values()];
    const refused = rejects.map(({ row }) => keyOf(row)).filter((key) => !key.includes(null));
    const present = new Set([...latest.keys(), ...refused.map(documentId)]);
    const gone = new Set(keys.map(documentId).filter((id) => !present.has(id)));
    const deletions = [...gone].map((id) => ({ row: undefined, ...operationOn(id, version, undefined) }));
    return { operations, deletions, duplicates: rows.length - rejects.length - operations.length, rejects };
  };
}

/** With the version of its batch, whatever it does: what an earlier claim sends late can neither undo nor repeat it. */
function operationOn(id: string, version: bigint, document: string | undefined): Omit<Operation, "row"> {
  const action = document === undefined ? "delete" : "index";
  const head = `{"${action}":{"_id":${JSON.stringify(id)},"version":${version},"version_type":"external_gte"}}\n`;
  const lines = head + (document ?? "");
  return { id, document, lines, bytes: Buffer.byteLength(lines) };
}

const LONGEST_ID_BYTES = 512;

/** The same key always gives the same document. A single value is its own id, so that people find it. */
export function documentId(values: readonly (string | null)[]): string {
  if (values.includes(null)) throw new MalformedValue("the key has no value");
  const [first] = values;
  const text = values.length === 1 && typeof first === "string" ? first : JSON.stringify(values);
  if (text !== "" && Buffer.byteLength(text) <= LONGEST_ID_BYTES) return text;
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
