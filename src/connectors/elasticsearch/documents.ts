import { createHash } from "node:crypto";
import type { Column, Row } from "../../domain/row.ts";
import type { RejectedRow } from "../sink.ts";
import { fieldType, MalformedValue } from "./field-types.ts";

/** What a row does to the index: writes its document, or deletes it. */
export interface Operation {
  readonly row: Row;
  readonly id: string;
  /** One line of JSON; undefined when the document is to be deleted. */
  readonly document: string | undefined;
  /** The lines of a bulk request, each with its line break. */
  readonly lines: string;
  readonly bytes: number;
}

interface EncodedBatch {
  /** The last row of each key. */
  readonly operations: readonly Operation[];
  readonly duplicates: number;
  readonly rejects: readonly RejectedRow[];
}

export type EncodeBatch = (rows: readonly Row[], version: bigint) => EncodedBatch;

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

  const encodeRow = (row: Row, version: bigint): Operation => {
    const id = documentId(keyAt.map((index) => row[index] ?? null));
    const isDeleted = deletedAt >= 0 && /^t/.test(row[deletedAt] ?? "");
    const action = isDeleted ? "delete" : "index";
    const head = `{"${action}":{"_id":${JSON.stringify(id)},"version":${version},"version_type":"external_gte"}}\n`;
    const document = isDeleted ? undefined : encodeDocument(row);
    const lines = head + (document ?? "");
    return { row, id, document, lines, bytes: Buffer.byteLength(lines) };
  };

  return (rows, version) => {
    const latest = new Map<string, Operation>();
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
    return { operations, duplicates: rows.length - rejects.length - operations.length, rejects };
  };
}

const LONGEST_ID_BYTES = 512;

/** The same key always gives the same document. A single value is its own id, so that people find it. */
function documentId(values: readonly (string | null)[]): string {
  if (values.includes(null)) throw new MalformedValue("the key has no value");
  const [first] = values;
  const text = values.length === 1 && typeof first === "string" ? first : JSON.stringify(values);
  if (text !== "" && Buffer.byteLength(text) <= LONGEST_ID_BYTES) return text;
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
