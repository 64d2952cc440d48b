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
  return columns.map(withoutOrigin);
}

export function withoutOrigin({ origin: _, ...column }: DescribedColumn): Column {
  return column;
}

const BEFORE_QUERY = "SELECT * FROM ";

/** The same, but allows missing and repeated names. */
export async function describeColumns(client: Client, query: string): Promise<DescribedColumn[]> {
  const statement = `${BEFORE_QUERY}${asSubquery(query)} LIMIT 0`;
  const { fields } = await extended(client, statement).catch((error: unknown) => {
    throw withPlace(databaseError(error, "run the source query", "SOURCE_QUERY_FAILED"), error, query);
  });
  const { rows } = await client.query<{ type: string; plain: string | null }>(TYPES_OF_COLUMNS, [
    fields.map(({ dataTypeID }) => dataTypeID),
    fields.map(({ dataTypeModifier }) => dataTypeModifier),
  ]);
  return fields.map(({ name, tableID, columnID }, index) => {
    const { type = "text", plain = null } = rows[index] ?? {};
    return {
      name,
      type,
      ...(plain !== null && { plainType: plain }),
      origin: tableID === 0 ? null : { relation: tableID, column: columnID },
    };
  });
}

/** A domain, or an array of one, is based on another type, which may itself be a domain; an enum is printed as text. */
const TYPES_OF_COLUMNS = `
  WITH RECURSIVE column_types (n, oid, modifier, brackets, depth) AS (
    SELECT n::int, c.oid, c.modifier, '', 0
      FROM unnest($1::oid[], $2::int[]) WITH ORDINALITY AS c (oid, modifier, n)
    UNION ALL
    SELECT c.n, below.oid, below.modifier, c.brackets || below.brackets, c.depth + 1
      FROM column_types c
      JOIN pg_type t ON t.oid = c.oid
      LEFT JOIN pg_type element ON element.oid = t.typelem AND t.typcategory = 'A'
     CROSS JOIN LATERAL (
       SELECT t.typbasetype, t.typtypmod, '' WHERE t.typtype = 'd'
       UNION ALL
       SELECT element.oid, -1, '[]' WHERE element.typtype IN ('d', 'e')
       UNION ALL
       SELECT 'text'::regtype, -1, '' WHERE t.typtype = 'e'
     ) AS below (oid, modifier, brackets)
  ), plain AS (
    SELECT DISTINCT ON (n) n, format_type(oid, modifier) || brackets AS type
      FROM column_types WHERE depth > 0 ORDER BY n, depth DESC
  )
  SELECT format_type(c.oid, c.modifier) AS type, plain.type AS plain
    FROM column_types c LEFT JOIN plain USING (n) WHERE c.depth = 0 ORDER BY c.n`;

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

/** The server gives the place in the whole statement; a person wants to know the place in the query. */
function withPlace(failure: VitrinaError, error: unknown, query: string): VitrinaError {
  const position = Number((error as { position?: string }).position);
  const place = Number.isNaN(position) ? undefined : placeInQuery(query, position - BEFORE_QUERY.length);
  if (place === undefined) return failure;
  return new VitrinaError(failure.known, failure.message, { cause: error, extra: { ...place } });
}
