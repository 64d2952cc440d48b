import { createHash } from "node:crypto";
import { relationName } from "../../../domain/relation-name.ts";
import { quoteIdentifier, quoteLiteral } from "../../../postgres/identifiers.ts";
import type { FollowedTable, ImageColumn } from "../../../sql-analysis/follow-plan.ts";

/** How the changes of one table are recorded: the trigger function that the owner of the source installs. */

/** Everything that records changes is in this schema. */
export const CHANGES_SCHEMA = "vitrina";
/** Owns all of it, and cannot log in. */
export const CHANGES_OWNER = "vitrina_changes";
/** Raised with every change of what the script installs: the owner then runs it again. */
export const CHANGES_VERSION = 3;

/** What is recorded of a table, for all pipelines of the source together. */
export interface RecordedTable {
  readonly schema: string;
  readonly name: string;
  readonly imageColumns: readonly ImageColumn[];
  readonly readColumns: readonly string[];
}

/** What a change may concern; the rest is left to the sweep. */
export function watchedTables(tables: readonly FollowedTable[]): readonly FollowedTable[] {
  return tables.filter(({ change }) => change.kind !== "ignore");
}

/** The name of a table in the change table. */
export const recordedName = relationName;

/** The same in SQL, of a row of `pg_namespace` and one of `pg_class`. */
export const recordedNameIn = (namespace: string, relation: string): string => {
  const parts = [`${namespace}.nspname`, `${relation}.relname`];
  const quoted = parts.map((part) => `replace(${part}, '"', '""')`).join(", ");
  return `CASE WHEN concat(${parts.join(", ")}) ~ '[."]' THEN format('"%s"."%s"', ${quoted}) ELSE concat_ws('.', ${parts.join(", ")}) END`;
};

/**
 * Of the function; the triggers of the table are called after it. Readable, and different for each table. The longest of
 * the three names has 63 bytes: PostgreSQL would cut off what is beyond, and the script would not find its trigger again.
 */
export function recorderName(table: { readonly schema: string; readonly name: string }): string {
  const full = recordedName(table);
  const readable = full.toLowerCase().replaceAll(/[^a-z0-9]+/g, "_");
  return `record_${readable.slice(0, 38)}_${createHash("md5").update(full).digest("hex").slice(0, 8)}`;
}

export const rowTriggerName = (table: { readonly schema: string; readonly name: string }): string =>
  `vitrina_${recorderName(table)}`;
export const truncateTriggerName = (table: { readonly schema: string; readonly name: string }): string =>
  `vitrina_${recorderName(table).replace("record_", "emptied_")}`;

/** Columns in one order, so that the same columns always make the same function. */
export function inOrder({ schema, name, imageColumns, readColumns }: RecordedTable): RecordedTable {
  const images = new Map(imageColumns.map((column) => [column.name, column]));
  const read = new Set([...readColumns, ...images.keys()]);
  return {
    schema,
    name,
    imageColumns: [...images.keys()].sort().flatMap((column) => images.get(column) ?? []),
    readColumns: [...read].sort(),
  };
}

/** What several pipelines need of their tables, each table once. */
export function mergedTables(tables: readonly RecordedTable[]): readonly RecordedTable[] {
  const merged = new Map<string, RecordedTable>();
  for (const table of tables) {
    const before = merged.get(recordedName(table));
    const imageColumns = [...(before?.imageColumns ?? []), ...table.imageColumns];
    const readColumns = [...(before?.readColumns ?? []), ...table.readColumns];
    merged.set(recordedName(table), inOrder({ schema: table.schema, name: table.name, imageColumns, readColumns }));
  }
  return [...merged.values()];
}

/** The most pairs that one call takes is 50. */
const PAIRS_AT_ONCE = 40;

/**
 * As text: jsonb would lose the sign of a zero and the elements of a composite type, and could not be cast back. As the
 * type prints it and never by a cast: whoever owns the table may alter the column to a type of his own, with a cast of
 * his own, and that would run with the rights of this function.
 */
function textIn(row: "OLD" | "NEW", { name }: ImageColumn): string {
  const value = `${row}.${quoteIdentifier(name)}`;
  return `CASE WHEN num_nulls(${value}) = 0 THEN format('%s', ${value}) END`;
}

function imageOf(row: "OLD" | "NEW", columns: readonly ImageColumn[]): string {
  const pairs = columns.map((column) => `${quoteLiteral(column.name).trim()}, ${textIn(row, column)}`);
  const calls: string[] = [];
  for (let start = 0; start === 0 || start < pairs.length; start += PAIRS_AT_ONCE) {
    calls.push(`jsonb_build_object(${pairs.slice(start, start + PAIRS_AT_ONCE).join(", ")})`);
  }
  return calls.join(" || ");
}

function rowOf(row: "OLD" | "NEW", columns: readonly string[]): string {
  return `ROW(${columns.map((name) => `${row}.${quoteIdentifier(name)}`).join(", ")})::record`;
}

/**
 * Compared byte by byte (`*=`), because that is what the mart shows: 1.0 is equal to 1.00, and printed otherwise. Done here
 * and not by WHEN, which would keep the owner from altering the type of a column, or dropping it. For the same reason a
 * column that is missing must not fail the write: the change is then recorded as one that nothing is known of.
 */
export function recorderBody(table: RecordedTable): string {
  const { imageColumns, readColumns } = inOrder(table);
  const relation = quoteLiteral(recordedName(table)).trim();
  const isUnchanged =
    readColumns.length === 0 ? "true" : `${rowOf("OLD", readColumns)} *= ${rowOf("NEW", readColumns)}`;
  return `
DECLARE
  before jsonb;
  after jsonb;
BEGIN
  BEGIN
    IF TG_OP = 'INSERT' THEN
      after := ${imageOf("NEW", imageColumns)};
    ELSIF TG_OP = 'DELETE' THEN
      before := ${imageOf("OLD", imageColumns)};
    ELSIF ${isUnchanged} THEN
      RETURN NULL;
    ELSE
      before := ${imageOf("OLD", imageColumns)};
      after := ${imageOf("NEW", imageColumns)};
      IF before = after THEN
        before := NULL;
      END IF;
    END IF;
  EXCEPTION WHEN OTHERS THEN
    PERFORM vitrina.store(${relation}, 'l', NULL, NULL);
    RETURN NULL;
  END;
  PERFORM vitrina.store(${relation}, 'r', before, after);
  RETURN NULL;
END
`;
}

/** Types whose text is the same in every session. */
const PLAIN =
  /^(smallint|integer|bigint|uuid|boolean|text|character varying|character|bpchar|numeric|bytea|name|oid)(\([\d,-]+\))?(\[\])?$/;

/** What the function sets: the application's own settings must not change what a value looks like. */
export function recorderSettings({ imageColumns }: Pick<RecordedTable, "imageColumns">): readonly string[] {
  const path = "search_path = pg_catalog, pg_temp";
  if (imageColumns.every(({ type }) => PLAIN.test(type))) return [path];
  return [
    path,
    "timezone = 'UTC'",
    "datestyle = 'ISO, YMD'",
    "intervalstyle = 'postgres'",
    "extra_float_digits = '1'",
    "lc_monetary = 'C'",
  ];
}
