import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { asSubquery, placeInQuery } from "./query-text.ts";
import { extended } from "./read-session.ts";

/** A column of a query, and where its values come from. */
export interface DescribedColumn extends Column {
  /** The column of a table or view that it shows as it is; null for anything computed. */
  readonly origin: { readonly relation: number; readonly column: number } | null;
}

/** The columns of a query, without running it. Also proves that the text is one statement that can stand in brackets. */
export async function describeQuery(client: Client, query: string): Promise<Column[]> {
  const columns = await describeColumns(client, query);
  const [problem] = columnNameProblems(columns);
  if (problem !== undefined) throw problem;
  return columns.map(({ name, type }) => ({ name, type }));
}

const BEFORE_QUERY = "SELECT * FROM ";

/** The same, also where names are missing or repeated. */
export async function describeColumns(client: Client, query: string): Promise<DescribedColumn[]> {
  const statement = `${BEFORE_QUERY}${asSubquery(query)} LIMIT 0`;
  const { fields } = await extended(client, statement).catch((error: unknown) => {
    throw withPlace(databaseError(error, "run the source query", "SOURCE_QUERY_FAILED"), error, query);
  });
  const { rows } = await client.query<{ type: string }>(
    `SELECT format_type(oid, modifier) AS type
       FROM unnest($1::oid[], $2::int[]) WITH ORDINALITY AS t (oid, modifier, n) ORDER BY n`,
    [fields.map(({ dataTypeID }) => dataTypeID), fields.map(({ dataTypeModifier }) => dataTypeModifier)],
  );
  return fields.map(({ name, tableID, columnID }, index) => ({
    name,
    type: rows[index]?.type ?? "text",
    origin: tableID === 0 ? null : { relation: tableID, column: columnID },
  }));
}

export function columnNameProblems(columns: readonly Column[]): VitrinaError[] {
  const names = columns.map(({ name }) => name);
  if (names.length === 0) return [new VitrinaError("SOURCE_COLUMN_NAMES", "The query returns no columns.")];
  const unnamed = names.includes("?column?")
    ? [new VitrinaError("SOURCE_COLUMN_NAMES", "A column of the query has no name.")]
    : [];
  const repeated = new Set(names.filter((name, index) => name !== "?column?" && names.indexOf(name) !== index));
  return [
    ...unnamed,
    ...[...repeated].map(
      (name) => new VitrinaError("SOURCE_COLUMN_NAMES", `The query returns ${quoteIdentifier(name)} twice.`),
    ),
  ];
}

/** The server tells where in the whole statement it stumbled; a person wants to know where in the query. */
function withPlace(failure: VitrinaError, error: unknown, query: string): VitrinaError {
  const position = Number((error as { position?: string }).position);
  const place = Number.isNaN(position) ? undefined : placeInQuery(query, position - BEFORE_QUERY.length);
  if (place === undefined) return failure;
  return new VitrinaError(failure.code, failure.message, { cause: error, extra: { ...place } });
}
