import type { MarkedTable, SourceMark } from "../../domain/source-mark.ts";
import type { Client } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { BEHIND_COLUMN } from "./behind-column.ts";
import { type DescribedColumn, describeColumns } from "./describe-query.ts";
import { upTo } from "./query-text.ts";
import { orderColumns } from "./read-session.ts";

/** The timeline that the next write goes to; a standby reports that of its last restart point. */
const SERVER = `
  SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
         CASE WHEN pg_is_in_recovery() THEN (SELECT lpad(to_hex(timeline_id), 8, '0') FROM pg_control_checkpoint())
              ELSE lower(left(pg_walfile_name(pg_current_wal_lsn()), 8)) END AS timeline`;

const DATABASE = `
  SELECT (SELECT oid FROM pg_database WHERE datname = current_database())::text AS database,
         CASE WHEN NOT pg_is_in_recovery() THEN pg_snapshot_xmax(pg_current_snapshot()) END::text AS next`;

/** A materialised view gets new storage with each refresh, so only its oid counts. */
const TABLES = `
  WITH RECURSIVE ${BEHIND_COLUMN}
  SELECT c.oid::text AS oid, CASE WHEN c.relkind = 'r' THEN c.relfilenode END::text AS place,
         (SELECT min(i.inhparent::text) FROM pg_inherits i
           WHERE i.inhrelid = c.oid AND i.inhparent IN (SELECT relid FROM behind)) AS "partOf"
    FROM pg_class c WHERE c.oid IN (SELECT relid FROM behind) ORDER BY c.oid`;

type Parts = Partial<Record<Exclude<keyof SourceMark, "tables">, string | null>>;

export async function takeSourceMark(client: Client, query: string, key: string): Promise<SourceMark> {
  const { rows } = await client.query<Parts>(DATABASE);
  const { database = null, next = null } = rows[0] ?? {};
  const { system = null, timeline = null } = await askServer(client);
  return { system, database, timeline, next, tables: await tablesOf(client, await columnOf(client, query, key)) };
}

async function columnOf(client: Client, query: string, key: string): Promise<DescribedColumn | undefined> {
  return (await describeColumns(client, query)).find(({ name }) => name === key);
}

async function tablesOf(client: Client, column: DescribedColumn | undefined): Promise<MarkedTable[] | null> {
  if (column?.origin == null) return null;
  const { relation, column: number } = column.origin;
  return (await client.query<Record<keyof MarkedTable, string>>(TABLES, [relation, number])).rows;
}

/** The root table that all parts belong to, and the name that the column has there. */
const ROOTS = `
  WITH RECURSIVE ${BEHIND_COLUMN}, up (part, relid) AS (
    SELECT oid, oid FROM unnest($3::oid[]) AS oid
    UNION
    SELECT up.part, i.inhparent FROM up JOIN pg_inherits i ON i.inhrelid = up.relid
     WHERE i.inhparent IN (SELECT b.relid FROM behind b)
  )
  SELECT DISTINCT n.nspname AS schema, c.relname AS table, a.attname AS column
    FROM up JOIN behind USING (relid) JOIN pg_class c ON c.oid = up.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = up.relid AND a.attnum = behind.attnum
   WHERE NOT EXISTS (SELECT FROM pg_inherits i JOIN behind b ON b.relid = i.inhparent WHERE i.inhrelid = up.relid)`;

/** True when one of these parts has a row up to the value, or when that is unknown. */
export async function partsReachBack(
  client: Client,
  query: string,
  key: string,
  parts: readonly MarkedTable[],
  value: string,
): Promise<boolean> {
  const column = await columnOf(client, query, key);
  if (column?.origin == null) return true;
  const oids = parts.map(({ oid }) => oid);
  const { rows: roots } = await client.query<{ schema: string; table: string; column: string }>(ROOTS, [
    column.origin.relation,
    column.origin.column,
    oids,
  ]);
  const order = await orderColumns(client, [column], [key]);
  for (const root of roots) {
    const named = order.map((one) => ({ ...one, name: root.column }));
    const table = `${quoteIdentifier(root.schema)}.${quoteIdentifier(root.table)}`;
    // Through the whole table: the reader of a partitioned table need not be allowed to read its parts.
    const question = `SELECT FROM ${table} AS t WHERE t.tableoid = ANY ($1::oid[]) AND ${upTo([value], named, "t")} LIMIT 1`;
    try {
      if ((await client.query(question, [oids])).rowCount !== 0) return true;
    } catch (error) {
      if (sqlState(error) === undefined) throw error;
      return true;
    }
  }
  return roots.length === 0;
}

export function askServer(client: Client): Promise<Pick<Parts, "system" | "timeline">> {
  return askIfShown<Pick<Parts, "system" | "timeline">>(client, SERVER);
}

/** Hosted servers may hide what they are: then there is nothing to compare. In a transaction. */
export async function askIfShown<T extends Record<string, string | null | undefined>>(
  client: Client,
  question: string,
): Promise<Partial<T>> {
  await client.query("SAVEPOINT server");
  try {
    return (await client.query<T>(question)).rows[0] ?? {};
  } catch (error) {
    if (sqlState(error) === undefined) throw error;
    await client.query("ROLLBACK TO SAVEPOINT server");
    return {};
  }
}
