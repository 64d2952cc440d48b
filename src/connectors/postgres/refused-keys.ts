import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import type { Row } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { loadError } from "../../postgres/errors.ts";
import { batchOfRows } from "../row-batch.ts";
import { createTrialTables, findRefusedRows } from "./refused-rows.ts";
import { lastOfEachKey, refuseIn, requireUnchanged, STAGE } from "./stage.ts";
import { nameList, type TargetTable } from "./target-table.ts";
import { writing } from "./write-transaction.ts";

const KEYS = "pg_temp.vitrina_keys";

/**
 * Keeps keys of rows, as the target stores them. One that the target's key cannot hold, or that lacks a value, belongs to
 * none of its rows, and is passed over. Runs inside a transaction of the caller.
 */
export async function keepKeys(
  client: Client,
  table: TargetTable,
  keys: readonly Row[],
  insertFrom: (relation: string) => string,
): Promise<void> {
  if (keys.length === 0) return;
  const ofKey = { ...table, columns: table.key, conversions: conversionsOfKey(table) };
  await client.query(
    `CREATE TEMP TABLE IF NOT EXISTS vitrina_keys AS SELECT ${nameList(table.key)} FROM ${STAGE} WITH NO DATA;
     TRUNCATE ${KEYS}; SAVEPOINT keys`,
  );
  try {
    await insertKeys(client, ofKey, keys, insertFrom);
  } catch (error) {
    if (loadError(error, writing(table.name)).retry !== "row") throw error;
    await client.query("ROLLBACK TO SAVEPOINT keys");
    const usable = await usableKeys(client, ofKey, table, keys, insertFrom);
    if (usable.length > 0) await insertKeys(client, ofKey, usable, insertFrom);
  }
}

async function insertKeys(
  client: Client,
  ofKey: TargetTable,
  keys: readonly Row[],
  insertFrom: (relation: string) => string,
): Promise<void> {
  const stream = client.query(copyFrom(`COPY ${KEYS} (${nameList(ofKey.key)}) FROM STDIN`));
  await pipeline(Readable.from(batchOfRows(keys).copyText(), { objectMode: false }), stream);
  await requireUnchanged(client, ofKey, KEYS);
  await client.query(insertFrom(lastOfEachKey(ofKey, KEYS)));
}

async function usableKeys(
  client: Client,
  ofKey: TargetTable,
  table: TargetTable,
  keys: readonly Row[],
  insertFrom: (relation: string) => string,
): Promise<readonly Row[]> {
  const columns = ofKey.key.map(({ name }) => name);
  // As wide as the trial of whole rows needs them: they are made only once.
  await createTrialTables(client, { columns: table.columns.map(({ name }) => name) });
  const unusable = await findRefusedRows(
    client,
    writing(table.name),
    {
      rowType: KEYS,
      columns,
      given: columns,
      statement: (relation) => `${refuseIn(ofKey, relation)} ${insertFrom(lastOfEachKey(ofKey, relation))}`,
    },
    batchOfRows(keys),
  );
  const misfits = new Set(unusable.map(({ index }) => index));
  return keys.filter((_, index) => !misfits.has(index));
}

/** The keys of rows as a batch brings them. */
export function keysOf({ columns, key }: TargetTable, rows: readonly Row[]): Row[] {
  const places = key.map(({ name }) => columns.findIndex((column) => column.name === name));
  return rows.map((row) => places.map((place) => row[place] ?? null));
}

function conversionsOfKey({ key, conversions }: TargetTable): TargetTable["conversions"] {
  return new Map([...conversions].filter(([name]) => key.some((column) => column.name === name)));
}
