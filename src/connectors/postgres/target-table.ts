import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier, quoteTable } from "../../postgres/identifiers.ts";
import type { SinkRequest } from "../sink.ts";
import type { OrderColumn } from "./query-text.ts";
import { orderColumns } from "./read-session.ts";

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/** The target as a load needs it: the query's columns with the types they have there, and the key. */
export interface TargetTable {
  readonly name: TableName;
  readonly exists: boolean;
  readonly columns: readonly Column[];
  readonly key: readonly OrderColumn[];
  /** True when ranges of the key, compared by bytes, can use the key's index. */
  readonly rangesUseIndex: boolean;
}

type TableRequest = Pick<SinkRequest, "columns" | "key" | "createTarget" | "addColumns">;

/** Finds the target and everything about it that a load needs. Changes nothing but adding columns, where allowed. */
export async function readTargetTable(client: Client, name: TableName, request: TableRequest): Promise<TargetTable> {
  const label = quoteTable(name);
  if (!(await tableExists(client, label))) return plannedTable(client, name, request);
  const found = await readColumns(client, label);
  const missing = missingColumns(found, request.columns);
  if (missing.length > 0) await addColumns(client, label, missing, request.addColumns);
  const existing = missing.length > 0 ? await readColumns(client, label) : found;
  const uniqueKeys = await readUniqueKeys(client, label);
  const keyNames = request.key.length > 0 ? request.key : (uniqueKeys.find(({ primary }) => primary)?.columns ?? []);
  if (keyNames.length === 0) {
    throw new VitrinaError("KEY_MISSING", `${label} has no primary key, and target_key is empty.`);
  }
  requireKeyInQuery(keyNames, request.columns);
  const index = requireUniqueIndex(label, keyNames, uniqueKeys);
  const columns = request.columns.map(({ name: column }) => existing.find((known) => known.name === column) as Column);
  const key = await orderColumns(client, columns, keyNames);
  return { name, exists: true, columns, key, rangesUseIndex: index.byBytes };
}

async function plannedTable(client: Client, name: TableName, request: TableRequest): Promise<TargetTable> {
  const { createTarget, columns, key } = request;
  const label = quoteTable(name);
  if (!createTarget) throw new VitrinaError("TARGET_MISSING", `The target ${label} does not exist.`);
  if (key.length === 0) {
    throw new VitrinaError("KEY_MISSING", `${label} cannot be created without a key.`, { hint: "Set target_key." });
  }
  requireKeyInQuery(key, columns);
  return { name, exists: false, columns, key: await orderColumns(client, columns, key), rangesUseIndex: false };
}

async function tableExists(client: Client, label: string): Promise<boolean> {
  const { rows } = await client.query("SELECT relkind FROM pg_class WHERE oid = to_regclass($1)", [label]);
  const kind = rows[0]?.relkind as string | undefined;
  if (kind === undefined || kind === "r" || kind === "p") return kind !== undefined;
  throw new VitrinaError("TARGET_MISSING", `${label} exists, but it is not a table.`, {
    hint: "Choose another target_table: only tables can be written.",
  });
}

export function columnDefinitions(columns: readonly Column[]): string {
  return columns.map(({ name, type }) => `${quoteIdentifier(name)} ${type}`).join(", ");
}

export function nameList(columns: readonly { readonly name: string }[], alias?: string): string {
  const prefix = alias === undefined ? "" : `${alias}.`;
  return columns.map(({ name }) => `${prefix}${quoteIdentifier(name)}`).join(", ");
}

async function readColumns(client: Client, label: string): Promise<Column[]> {
  const { rows } = await client.query(
    `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type
       FROM pg_attribute a
      WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY a.attnum`,
    [label],
  );
  return rows as Column[];
}

function missingColumns(existing: readonly Column[], wanted: readonly Column[]): Column[] {
  return wanted.filter(({ name }) => !existing.some((column) => column.name === name));
}

async function addColumns(client: Client, label: string, missing: readonly Column[], allowed: boolean): Promise<void> {
  if (!allowed) {
    const names = missing.map(({ name }) => quoteIdentifier(name)).join(", ");
    throw new VitrinaError("TARGET_COLUMN_MISSING", `${label} has no column ${names}.`);
  }
  const additions = missing.map(({ name, type }) => `ADD COLUMN IF NOT EXISTS ${quoteIdentifier(name)} ${type}`);
  await client.query(`ALTER TABLE ${label} ${additions.join(", ")}`);
}

interface UniqueKey {
  readonly primary: boolean;
  readonly columns: string[];
  /** No column of it sorts by the rules of a language. */
  readonly byBytes: boolean;
}

async function readUniqueKeys(client: Client, label: string): Promise<UniqueKey[]> {
  const { rows } = await client.query(
    `SELECT i.indisprimary AS primary, to_json(array_agg(a.attname ORDER BY k.n)) AS columns,
            bool_and(k.coll = 0 OR k.coll = '"C"'::regcollation) AS by_bytes
       FROM pg_index i
       CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indcollation::oid[]) WITH ORDINALITY AS k (attnum, coll, n)
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
        AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
      GROUP BY i.indexrelid, i.indisprimary`,
    [label],
  );
  return rows.map((row) => ({
    primary: row.primary === "t",
    columns: JSON.parse(row.columns) as string[],
    byBytes: row.by_bytes === "t",
  }));
}

function requireUniqueIndex(label: string, key: readonly string[], uniqueKeys: readonly UniqueKey[]): UniqueKey {
  const wanted = [...key].sort().join("\0");
  const index = uniqueKeys.find(({ columns }) => [...columns].sort().join("\0") === wanted);
  if (index !== undefined) return index;
  const columns = key.map(quoteIdentifier).join(", ");
  throw new VitrinaError("KEY_NOT_UNIQUE_IN_TARGET", `${label} has no unique index on exactly (${columns}).`);
}

function requireKeyInQuery(key: readonly string[], columns: readonly Column[]): void {
  const missing = key.find((name) => !columns.some((column) => column.name === name));
  if (missing === undefined) return;
  throw new VitrinaError(
    "KEY_NOT_IN_QUERY",
    `The query returns no column ${quoteIdentifier(missing)}, which is in the key.`,
  );
}
