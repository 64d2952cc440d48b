import { columnsLostSince, type TargetLoss, type TargetMark } from "../../domain/target-mark.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { TargetTable } from "./target-table.ts";

/** A table, and its columns that the load writes. */
type Written = Pick<TargetTable, "name" | "columns">;

interface Found {
  readonly identity: string;
  readonly storage: string;
  readonly asOf: string;
  /** The number of a column is never given to another one of its table. */
  readonly columnIds: [name: string, id: string][];
}

export async function takeTableMark(client: Client, table: Written): Promise<TargetMark | null> {
  const found = await find(client, table);
  return found === undefined ? null : { ...found, filled: !(await isEmpty(client, table.name)) };
}

export async function tableLossSince(
  client: Client,
  table: Written,
  mark: TargetMark,
): Promise<TargetLoss | undefined> {
  const { name } = table;
  const { identity, storage, asOf, filled } = mark;
  const found = await find(client, table);
  if (found === undefined) return "missing";
  if (identity !== undefined && identity !== found.identity) return "replaced";
  if (filled === false) return undefined;
  if (filled === true && (await isEmpty(client, name))) return "emptied";
  const lost = columnsLostSince(mark, found.columnIds);
  if (lost !== undefined) return lost;
  if (storage === undefined || asOf === undefined || storage === found.storage) return undefined;
  if (await hasRowBefore(client, name, asOf)) return undefined;
  return (await isEmpty(client, name)) ? "emptied" : "rewritten";
}

async function find(client: Client, { name, columns }: Written): Promise<Found | undefined> {
  const { rows } = await client.query(
    `SELECT oid AS identity, relfilenode AS storage, pg_snapshot_xmax(pg_current_snapshot()) AS "asOf",
            (SELECT json_agg(json_build_array(attname, attnum::text) ORDER BY attnum) FROM pg_attribute
              WHERE attrelid = pg_class.oid AND attname = ANY ($2)) AS columns
       FROM pg_class WHERE oid = to_regclass($1)`,
    [quoteTable(name), columns.map((column) => column.name)],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { identity, storage, asOf } = row;
  return { identity, storage, asOf, columnIds: JSON.parse(row.columns ?? "[]") };
}

async function isEmpty(client: Client, name: TableName): Promise<boolean> {
  const { rows } = await client.query(`SELECT NOT EXISTS (SELECT FROM ${quoteTable(name)}) AS empty`);
  return rows[0]?.empty === "t";
}

/**
 * VACUUM FULL and CLUSTER give a table new storage, as TRUNCATE does; but they keep which transaction wrote each
 * row. That number has 32 bits and wraps around, so it is compared by its distance from the next one.
 */
async function hasRowBefore(client: Client, name: TableName, asOf: string): Promise<boolean> {
  const { rows } = await client.query(
    `WITH now AS MATERIALIZED (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next)
     SELECT EXISTS (
       SELECT FROM ${quoteTable(name)} t, now
        WHERE ((now.next - t.xmin::text::bigint) & 4294967295) > now.next - $1::bigint) AS found`,
    [asOf],
  );
  return rows[0]?.found === "t";
}
