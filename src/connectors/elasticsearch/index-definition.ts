import { createHash } from "node:crypto";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import { type Dialect, fieldType } from "./field-types.ts";
import type { IndexOptions } from "./options.ts";

/** An index as the pipeline wants it: derived from the types of the query, with the pipeline's own changes on top. */
export interface IndexDefinition {
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Shows whether an index was made from the same definition. */
  readonly fingerprint: string;
}

/**
 * How long the version of a deleted document is remembered. A runner that was away for longer can no longer write,
 * because another took its alias; this covers what was on its way to the index at that moment.
 */
const DEFAULT_SETTINGS = { gc_deletes: "1h" };

export function indexDefinition(
  columns: readonly Column[],
  { mapping = {}, settings = {}, delete_when }: IndexOptions,
  dialect: Dialect,
): IndexDefinition {
  for (const { name } of columns) requireFieldName(name);
  requireColumns(columns, [...Object.keys(mapping), ...(delete_when === undefined ? [] : [delete_when])]);
  const properties = Object.fromEntries(
    columns.map((column) => [column.name, mapping[column.name] ?? fieldType(column).mapping(dialect)]),
  );
  const wanted = { properties, settings: { ...DEFAULT_SETTINGS, ...settings } };
  return { ...wanted, fingerprint: createHash("sha256").update(JSON.stringify(wanted)).digest("hex") };
}

/** A dot would make it an object, and a name that the index reserves would be lost. */
function requireFieldName(name: string): void {
  if (!name.includes(".") && !name.startsWith("_")) return;
  throw new VitrinaError(
    "SOURCE_COLUMN_NAMES",
    `The column "${name}" cannot become a field of an index: field names contain no dot, and do not begin with _.`,
    { hint: "Give the column another name with AS." },
  );
}

function requireColumns(columns: readonly Column[], names: readonly string[]): void {
  const unknown = names.find((name) => !columns.some((column) => column.name === name));
  if (unknown === undefined) return;
  throw new VitrinaError(
    SEARCH_ERRORS.INDEX_DIFFERS,
    `target_options names a column "${unknown}" that the query does not have.`,
    {
      hint: "Correct target_options, or select the column in the query.",
    },
  );
}
