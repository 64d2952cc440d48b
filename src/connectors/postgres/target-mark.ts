import type { TargetLoss, TargetMark } from "../../domain/target-mark.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";

interface Found {
  readonly identity: string;
  readonly storage: string;
  readonly asOf: string;
  readonly numbers: Readonly<Record<string, number>>;
}

/** `columns`: those that the load writes. */
export async function takeTableMark(
  client: Client,
  name: TableName,
  columns: readonly string[],
): Promise<TargetMark | null> {
  const found = await find(client, name, columns);
  return found === undefined ? null : { ...found, filled: !(await isEmpty(client, name)) };
}

export async function tableLossSince(
  client: Client,
  name: TableName,
  columns: readonly string[],
  { identity, storage, asOf, filled, numbers = {} }: TargetMark,
): Promise<TargetLoss | undefined> {
  const found = await find(client, name, columns);
  if (found === undefined) return "missing";
  if (identity !== undefined && identity !== found.identity) return "replaced";
  if (filled === false) return undefined;
  if (filled === true && (await isEmpty(client, name))) return "emptied";
  // A restored dump numbers its columns again.
  if (
    identity !== undefined &&
    columns.some((column) => column in numbers && numbers[column] !== found.numbers[column])
  )
    return "bared";
  if (storage === undefined || asOf === undefined || storage === found.storage) return undefined;
  return (await hasRowBefore(client, name, asOf)) ? undefined : "emptied";
}

async function find(client: Client, name: TableName, columns: readonly string[]): Promise<Found | undefined> {
  const { rows } = await client.query(
    `SELECT oid AS identity, relfilenode AS storage, pg_snapshot_xmax(pg_current_snapshot()) AS "asOf",
            (SELECT json_object_agg(attname, attnum) FROM pg_attribute
              WHERE attrelid = oid AND attnum > 0 AND NOT attisdropped AND attname = ANY ($2)) AS numbers
       FROM pg_class WHERE oid = to_regclass($1)`,
    [quoteTable(name), columns],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return { identity: row.identity, storage: row.storage, asOf: row.asOf, numbers: JSON.parse(row.numbers ?? "{}") };
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
