import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { asSubquery } from "./query-text.ts";
import { extended } from "./read-session.ts";

/** The columns of a query, without running it. Also proves that the text is one statement that can stand in brackets. */
export async function describeQuery(client: Client, query: string): Promise<Column[]> {
  const { fields } = await extended(client, `SELECT * FROM ${asSubquery(query)} LIMIT 0`).catch((error: unknown) => {
    throw databaseError(error, "run the source query", "SOURCE_QUERY_FAILED");
  });
  requireDistinctNames(fields.map(({ name }) => name));
  const { rows } = await client.query<{ type: string }>(
    `SELECT format_type(oid, modifier) AS type
       FROM unnest($1::oid[], $2::int[]) WITH ORDINALITY AS t (oid, modifier, n) ORDER BY n`,
    [fields.map(({ dataTypeID }) => dataTypeID), fields.map(({ dataTypeModifier }) => dataTypeModifier)],
  );
  return fields.map(({ name }, index) => ({ name, type: rows[index]?.type ?? "text" }));
}

function requireDistinctNames(names: readonly string[]): void {
  if (names.length === 0) throw new VitrinaError("SOURCE_COLUMN_NAMES", "The query returns no columns.");
  if (names.includes("?column?")) throw new VitrinaError("SOURCE_COLUMN_NAMES", "A column of the query has no name.");
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated === undefined) return;
  throw new VitrinaError("SOURCE_COLUMN_NAMES", `The query returns ${quoteIdentifier(repeated)} twice.`);
}
