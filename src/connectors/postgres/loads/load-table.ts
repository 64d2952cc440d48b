import { createHash } from "node:crypto";
import type { Client } from "../../../postgres/connection.ts";
import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { nameList, type TargetTable } from "../target-table.ts";

const SUFFIXES = ["load", "gone", "refused"] as const;

/**
 * Tables beside the target that hold an unfinished load. Their names contain the pipeline's id, so each load finds its
 * own, and a short hash of the target's name, so that a pipeline with a new target does not continue the old load.
 */
export function loadTable(target: TableName, loadId: string, suffix: (typeof SUFFIXES)[number]): TableName {
  const ofTarget = createHash("sha256").update(target.table).digest("hex").slice(0, 8);
  return { schema: target.schema, table: `_vitrina_${suffix}_${loadId.replaceAll("-", "")}_${ofTarget}` };
}

export function loadTables(target: TableName, loadId: string): TableName[] {
  return SUFFIXES.map((suffix) => loadTable(target, loadId, suffix));
}

const LOAD_TABLE = new RegExp(`_vitrina_(?:${SUFFIXES.join("|")})_[0-9a-f]{32}_[0-9a-f]{8}`, "g");

/** The server's messages name the load's table; people know the target. */
export function inWordsOfTarget(message: string, target: TableName): string {
  return message.replace(LOAD_TABLE, () => target.table);
}

/** Counts what the tables of a load have been. A load that an earlier version left unfinished starts over. */
const LAYOUT = 2;
const mark = (name: string): string => `vitrina load ${LAYOUT}: ${name}`;

/** Marks a table with the kind of load it belongs to. */
export async function markLoad(client: Client, table: TableName, name: string): Promise<void> {
  await client.query(`COMMENT ON TABLE ${quoteTable(table)} IS ${quoteLiteral(mark(name))}`);
}

export async function isMarked(client: Client, table: TableName, name: string): Promise<boolean> {
  const { rows } = await client.query("SELECT obj_description(to_regclass($1), 'pg_class') AS mark", [
    quoteTable(table),
  ]);
  return rows[0]?.mark === mark(name);
}

/**
 * Creates a table that refuses rows as the target does, by its types, NOT NULL and checks. It has only the columns of
 * the query: the target fills the others itself, and what is required of them can only be judged there.
 */
export async function createLike(client: Client, table: TargetTable, loading: TableName): Promise<void> {
  const label = quoteTable(loading);
  await client.query(`CREATE TABLE ${label} (LIKE ${quoteTable(table.name)} INCLUDING CONSTRAINTS)`);
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
      WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attname <> ALL ($2)`,
    [label, table.columns.map(({ name }) => name)],
  );
  if (rows.length === 0) return;
  const drops = rows.map(({ name }) => `DROP COLUMN ${quoteIdentifier(name)}`);
  await client.query(`ALTER TABLE ${label} ${drops.join(", ")}`);
}

/** Creates a table of keys of the target. */
export async function createKeyTable(client: Client, { name, key }: TargetTable, keys: TableName): Promise<void> {
  const label = quoteTable(keys);
  await client.query(`CREATE TABLE ${label} AS SELECT ${nameList(key)} FROM ${quoteTable(name)} WITH NO DATA`);
  await client.query(`ALTER TABLE ${label} ADD PRIMARY KEY (${nameList(key)})`);
}

export function insertKeys({ key }: TargetTable, keys: TableName, relation: string): string {
  const names = nameList(key);
  return `INSERT INTO ${quoteTable(keys)} (${names}) SELECT ${names} FROM ${relation} AS s ON CONFLICT DO NOTHING`;
}

export async function dropTables(client: Client, tables: readonly TableName[]): Promise<void> {
  await client.query(`DROP TABLE IF EXISTS ${tables.map(quoteTable).join(", ")}`);
}
