import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type Client, connectForData } from "../../postgres/connection.ts";
import { databaseError } from "../../postgres/errors.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import type { Column, ReadRequest, Row, Source, SourceReader } from "../source.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";

export interface PostgresSourceConfig {
  readonly url: string;
  readonly applicationName: string;
  /** How long one fetch may take; the first one of a sorted query does most of its work. */
  readonly statementTimeoutMs: number;
}

/** Reads through one server-side cursor per run: the query runs once, in one snapshot, with constant memory. */
export function openPostgresSource(config: PostgresSourceConfig): Source {
  return {
    async describe(query) {
      const client = await openReadOnlySession(config);
      try {
        return await describeQuery(client, query);
      } finally {
        await client.end();
      }
    },

    async open(request) {
      const client = await openReadOnlySession(config);
      try {
        await extended(client, declareCursor(request, await collatableColumns(client, request)));
        return cursorReader(client);
      } catch (error) {
        await client.end();
        throw databaseError(error, "read the source", "SOURCE_QUERY_FAILED");
      }
    },
  };
}

async function openReadOnlySession(config: PostgresSourceConfig): Promise<Client> {
  const client = await connectForData({
    url: config.url,
    applicationName: config.applicationName,
    settings: {
      ...EXACT_TEXT_SETTINGS,
      default_transaction_read_only: "on",
      statement_timeout: `${config.statementTimeoutMs}ms`,
      // All rows are going to be fetched, so plan for all of them.
      cursor_tuple_fraction: "1.0",
    },
  }).catch((error: unknown) => {
    throw databaseError(error, "connect to the source");
  });
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  return client;
}

/** The extended protocol takes exactly one statement, so a query cannot smuggle in a second one. */
function extended(client: Client, text: string) {
  return client.query<(string | null)[]>({ text, rowMode: "array", queryMode: "extended" } as never);
}

/** The query stands on lines of its own: a trailing comment must not swallow the bracket. */
function asSubquery(query: string): string {
  return `(\n${query.trim().replace(/;\s*$/, "")}\n) AS q`;
}

async function describeQuery(client: Client, query: string): Promise<Column[]> {
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
  const unnamed = names.filter((name) => name === "?column?");
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  if (unnamed.length > 0) throw new VitrinaError("SOURCE_COLUMN_NAMES", "A column of the query has no name.");
  if (repeated.length > 0) {
    throw new VitrinaError("SOURCE_COLUMN_NAMES", `The query returns ${quoteIdentifier(repeated[0] ?? "")} twice.`);
  }
}

/** Text sorts by the server's language rules, which change between versions; bytes never do. */
async function collatableColumns(client: Client, { columns, orderBy }: ReadRequest): Promise<Set<string>> {
  const ordered = columns.filter(({ name }) => orderBy.includes(name));
  const { rows } = await client.query<{ name: string }>(
    `SELECT t.name FROM unnest($1::text[], $2::text[]) AS t (name, type)
       JOIN pg_type ON pg_type.oid = to_regtype(t.type) WHERE pg_type.typcollation <> 0`,
    [ordered.map(({ name }) => name), ordered.map(({ type }) => type.replace(/\(.*\)/, ""))],
  );
  return new Set(rows.map(({ name }) => name));
}

function declareCursor({ query, columns, orderBy, after }: ReadRequest, collatable: Set<string>): string {
  const collation = (name: string): string => (collatable.has(name) ? ' COLLATE "C"' : "");
  const order = orderBy.map((name) => `q.${quoteIdentifier(name)}${collation(name)}`);
  const names = columns.map(({ name }) => `q.${quoteIdentifier(name)}`).join(", ");
  return `DECLARE vitrina_read NO SCROLL CURSOR FOR
    SELECT ${names} FROM ${asSubquery(query)}
    ${after === null ? "" : `WHERE ${behind(after)}`}
    ORDER BY ${order.join(", ")}`;

  function behind(position: readonly string[]): string {
    const values = orderBy.map((name, index) => {
      const type = columns.find((column) => column.name === name)?.type ?? "text";
      return `${quoteLiteral(position[index] ?? "")}::${type}${collation(name)}`;
    });
    // A row without a key is behind every position: it must be met, and refused, not passed over.
    const nulls = orderBy.map((name) => `q.${quoteIdentifier(name)} IS NULL`);
    return `(${order.join(", ")}) > (${values.join(", ")}) OR ${nulls.join(" OR ")}`;
  }
}

function cursorReader(client: Client): SourceReader {
  return {
    async read(limit): Promise<readonly Row[]> {
      try {
        return (await extended(client, `FETCH FORWARD ${limit} FROM vitrina_read`)).rows;
      } catch (error) {
        throw databaseError(error, "read the source", "SOURCE_QUERY_FAILED");
      }
    },
    close: () => client.end(),
  };
}
