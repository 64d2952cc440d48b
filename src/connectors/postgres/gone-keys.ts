import type { Row } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import type { RowBatch } from "../row-batch.ts";
import type { TargetKey } from "../sink.ts";
import { sameKey } from "./merge-statement.ts";
import { keepKeys, keysOf } from "./refused-keys.ts";
import { nameList, type TargetTable } from "./target-table.ts";
import { deleteByKey } from "./write-rows.ts";

/**
 * Keys whose rows may be gone from the source. They lie in temporary tables with the target's own types, since only the
 * target knows which texts are one key: 1.0 and 1.00 are. All functions run inside a transaction of the caller.
 */
const GONE = "pg_temp.vitrina_gone";
const PRESENT = "pg_temp.vitrina_present";

/** Those of the keys that no row of the batch has letter by letter: mostly none, and then nothing else is to be done. */
export function keysWithoutRow(table: TargetTable, batch: RowBatch, keys: readonly TargetKey[]): readonly TargetKey[] {
  if (keys.length === 0) return keys;
  const own = new Set(keysOf(table, batch.rows()).map((key) => JSON.stringify(key)));
  return keys.filter((key) => !own.has(JSON.stringify(key)));
}

/** Deletes what the target has for the keys, except for those that `present`, a relation, has. Returns how many rows. */
export async function deleteGone(
  client: Client,
  table: TargetTable,
  keys: readonly TargetKey[],
  present: string,
): Promise<number> {
  const names = nameList(table.key);
  await createKeys(client, table, GONE);
  await keepKeys(
    client,
    table,
    keys,
    (relation) =>
      `INSERT INTO ${GONE} SELECT ${names} FROM ${relation} AS g EXCEPT SELECT ${names} FROM ${present} AS p`,
  );
  return deleteByKey(client, table, GONE);
}

/** The keys of rows of which some may be refused, as a relation: they are present all the same. */
export async function presentKeys(client: Client, table: TargetTable, rows: readonly Row[]): Promise<string> {
  await createKeys(client, table, PRESENT);
  await keepKeys(client, table, keysOf(table, rows), insertInto(table, PRESENT));
  return PRESENT;
}

/** For how many of the keys the target has a row. */
export async function countRowsWith(client: Client, table: TargetTable, keys: readonly TargetKey[]): Promise<number> {
  await createKeys(client, table, PRESENT);
  await keepKeys(client, table, keys, insertInto(table, PRESENT));
  const { rows } = await client.query<{ n: string }>(
    `SELECT count(*) AS n FROM ${quoteTable(table.name)} AS t
      WHERE EXISTS (SELECT FROM ${PRESENT} AS k WHERE ${sameKey(table.key, "t", "k")})`,
  );
  return Number(rows[0]?.n);
}

/** From the target itself: the writer need not be allowed to name its types. */
async function createKeys(client: Client, { name, key }: TargetTable, keys: string): Promise<void> {
  const [, plain] = keys.split(".");
  await client.query(
    `CREATE TEMP TABLE IF NOT EXISTS ${plain} AS SELECT ${nameList(key)} FROM ${quoteTable(name)} WITH NO DATA;
     TRUNCATE ${keys}`,
  );
}

const insertInto =
  ({ key }: TargetTable, keys: string) =>
  (relation: string): string =>
    `INSERT INTO ${keys} SELECT ${nameList(key)} FROM ${relation} AS s`;
