import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { from as copyFrom } from "pg-copy-streams";
import type { Client } from "../../postgres/connection.ts";
import { batchOfRows } from "../row-batch.ts";
import type { RejectedRow } from "../sink.ts";
import { findRefusedRows } from "./refused-rows.ts";
import { lastOfEachKey, refuseIn, STAGE } from "./stage.ts";
import { nameList, type TargetTable } from "./target-table.ts";
import { writing } from "./write-transaction.ts";

const KEYS = "pg_temp.vitrina_keys";

/**
 * Keeps the keys of refused rows. One that the target's key cannot hold, or that lacks a value, belongs to none of its
 * rows, and is passed over. The trial tables are there.
 */
export async function keepKeys(
  client: Client,
  table: TargetTable,
  rejects: readonly RejectedRow[],
  insertFrom: (relation: string) => string,
): Promise<void> {
  const ofKey = { ...table, columns: table.key, conversions: conversionsOfKey(table) };
  const names = nameList(table.key);
  await client.query(
    `CREATE TEMP TABLE IF NOT EXISTS vitrina_keys AS SELECT ${names} FROM ${STAGE} WITH NO DATA; TRUNCATE ${KEYS}`,
  );
  const places = table.key.map(({ name }) => table.columns.findIndex((column) => column.name === name));
  const keys = rejects.map(({ row }) => places.map((place) => row[place] ?? null));
  const columns = table.key.map(({ name }) => name);
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
  const usable = batchOfRows(keys.filter((_, index) => !misfits.has(index)));
  if (usable.count === 0) return;
  const stream = client.query(copyFrom(`COPY ${KEYS} (${names}) FROM STDIN`));
  await pipeline(Readable.from(usable.copyText(), { objectMode: false }), stream);
  await client.query(insertFrom(lastOfEachKey(ofKey, KEYS)));
}

function conversionsOfKey({ key, conversions }: TargetTable): TargetTable["conversions"] {
  return new Map([...conversions].filter(([name]) => key.some((column) => column.name === name)));
}
