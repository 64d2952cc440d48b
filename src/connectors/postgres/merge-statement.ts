import type { Column } from "../../domain/row.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { nameList } from "./target-table.ts";

interface MergedColumns {
  readonly columns: readonly Column[];
  readonly key: readonly Column[];
}

export function sameKey(key: readonly Column[], left: string, right: string): string {
  return key.map(({ name }) => `${left}.${quoteIdentifier(name)} = ${right}.${quoteIdentifier(name)}`).join(" AND ");
}

/**
 * Rows are compared by `*<>`, which looks at the stored bytes: it works for types without an equality (json, point),
 * and it tells 1.0 from 1.00, also in the key, where they are one row. The cast to record keeps the parser from comparing
 * column by column.
 */
export function rowsDiffer({ columns }: Pick<MergedColumns, "columns">, left: string, right: string): string {
  return `ROW(${nameList(columns, left)})::record OPERATOR(pg_catalog.*<>) ROW(${nameList(columns, right)})::record`;
}

/**
 * For the transaction of a batch: its few thousand rows are looked up in the target by key. The planner overestimates
 * the cost of such lookups, and would rather scan the whole target for every batch.
 */
export const SEEK_BY_KEY = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/**
 * MERGE rather than INSERT … ON CONFLICT, because it leaves unchanged rows alone: no lock, no new version, no WAL.
 */
export function mergeInto(target: string, source: string, shape: MergedColumns): string {
  return `${updateIn(target, source, shape)} ${whenNotMatched(shape)}`;
}

/** The half of a MERGE that changes rows. */
export function updateIn(target: string, source: string, shape: MergedColumns): string {
  const { columns } = shape;
  const assignments = columns.map(({ name }) => `${quoteIdentifier(name)} = s.${quoteIdentifier(name)}`).join(", ");
  return `${merge(target, source, shape)}
    WHEN MATCHED AND ${rowsDiffer(shape, "t", "s")} THEN UPDATE SET ${assignments}`;
}

/** The half of a MERGE that adds rows. */
export function insertInto(target: string, source: string, shape: MergedColumns): string {
  return `${merge(target, source, shape)} ${whenNotMatched(shape)}`;
}

function merge(target: string, source: string, { key }: MergedColumns): string {
  return `MERGE INTO ${target} AS t USING ${source} AS s ON ${sameKey(key, "t", "s")}`;
}

function whenNotMatched({ columns }: MergedColumns): string {
  return `WHEN NOT MATCHED THEN INSERT (${nameList(columns)}) VALUES (${nameList(columns, "s")})`;
}
