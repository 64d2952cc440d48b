import { quoteIdentifier, quoteTable } from "../../postgres/identifiers.ts";
import type { TableName, TargetColumn, TargetTable } from "./target-table.ts";

/**
 * The upsert of one batch, given as one text array per column.
 *
 * MERGE rather than INSERT … ON CONFLICT, because it leaves unchanged rows alone: no lock, no new version, no WAL.
 * Rows are compared by `*<>`, which looks at the stored bytes: it works for types without an equality (json, point),
 * and it tells 1.0 from 1.00. The cast to record keeps the parser from comparing column by column.
 */
export function mergeStatement(name: TableName, { columns, key }: TargetTable): string {
  const names = columns.map((column) => quoteIdentifier(column.name));
  const rest = columns.filter((column) => !key.includes(column.name));
  const params = columns.map((_, index) => `$${index + 1}::text[]`);
  const casts = columns.map(
    (column) => `r.${quoteIdentifier(column.name)}::${castType(column)} AS ${quoteIdentifier(column.name)}`,
  );
  const sameKey = key.map((column) => `t.${quoteIdentifier(column)} = s.${quoteIdentifier(column)}`);
  return `
    MERGE INTO ${quoteTable(name)} AS t
    USING (SELECT ${casts.join(", ")} FROM unnest(${params.join(", ")}) AS r (${names.join(", ")})) AS s
       ON ${sameKey.join(" AND ")}
    ${rest.length === 0 ? "" : updateWhenDifferent(rest)}
    WHEN NOT MATCHED THEN INSERT (${names.join(", ")}) VALUES (${names.map((column) => `s.${column}`).join(", ")})`;
}

function castType(column: TargetColumn): string {
  return column.cutsOnCast ? column.bareType : column.type;
}

function updateWhenDifferent(columns: readonly TargetColumn[]): string {
  const image = (alias: string): string =>
    columns.map((column) => `${alias}.${quoteIdentifier(column.name)}${column.padded ? "::text" : ""}`).join(", ");
  const assignments = columns.map(({ name }) => `${quoteIdentifier(name)} = s.${quoteIdentifier(name)}`);
  return `WHEN MATCHED AND ROW(${image("t")})::record OPERATOR(pg_catalog.*<>) ROW(${image("s")})::record
    THEN UPDATE SET ${assignments.join(", ")}`;
}
