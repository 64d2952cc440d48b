import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier, quoteTable } from "../../postgres/identifiers.ts";
import type { SinkRequest } from "../sink.ts";

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

export interface TargetColumn {
  readonly name: string;
  /** The type with its modifier, as SQL writes it. */
  readonly type: string;
  /** The type without its modifier: an explicit cast to varchar(5) would cut a longer text silently. */
  readonly bareType: string;
  /** True for character types whose modifier cuts on an explicit cast. */
  readonly cutsOnCast: boolean;
  /** char(n) is stored padded, so it is compared as text. */
  readonly padded: boolean;
}

export interface TargetTable {
  readonly columns: readonly TargetColumn[];
  readonly key: readonly string[];
}

/** Finds the target and everything about it that a batch needs, or creates it when the pipeline says so. */
export async function prepareTargetTable(client: Client, name: TableName, request: SinkRequest): Promise<TargetTable> {
  const label = quoteTable(name);
  if (!(await exists(client, label))) await createTable(client, label, request);
  const columns = await readColumns(client, label);
  for (const { name: column } of request.columns) {
    if (!columns.some((existing) => existing.name === column)) {
      throw new VitrinaError("TARGET_COLUMN_MISSING", `${label} has no column ${quoteIdentifier(column)}.`);
    }
  }
  const uniqueKeys = await readUniqueKeys(client, label);
  const key = request.key.length > 0 ? request.key : (uniqueKeys.find(({ primary }) => primary)?.columns ?? []);
  if (key.length === 0) throw new VitrinaError("KEY_MISSING", `${label} has no primary key, and target_key is empty.`);
  requireUsableKey(label, key, request, uniqueKeys);
  return {
    columns: request.columns.map(({ name }) => columns.find((column) => column.name === name) as TargetColumn),
    key,
  };
}

async function exists(client: Client, label: string): Promise<boolean> {
  const { rows } = await client.query("SELECT relkind FROM pg_class WHERE oid = to_regclass($1)", [label]);
  const kind = rows[0]?.relkind as string | undefined;
  if (kind === undefined || kind === "r" || kind === "p") return kind !== undefined;
  throw new VitrinaError("TARGET_MISSING", `${label} exists, but it is not a table.`, {
    hint: "Choose another target_table: only tables can be written.",
  });
}

async function createTable(client: Client, label: string, { createTarget, columns, key }: SinkRequest): Promise<void> {
  if (!createTarget) throw new VitrinaError("TARGET_MISSING", `The target ${label} does not exist.`);
  if (key.length === 0) {
    throw new VitrinaError("KEY_MISSING", `${label} cannot be created without a key.`, { hint: "Set target_key." });
  }
  requireKeyInQuery(key, columns);
  const definitions = columns.map(({ name, type }) => `${quoteIdentifier(name)} ${type}`);
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${label} (${definitions.join(", ")}, PRIMARY KEY (${key.map(quoteIdentifier).join(", ")}))`,
  );
}

async function readColumns(client: Client, label: string): Promise<TargetColumn[]> {
  const { rows } = await client.query(
    `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, format_type(a.atttypid, -1) AS bare_type,
            a.atttypid IN ('bpchar'::regtype, 'varchar'::regtype, 'bit'::regtype, 'varbit'::regtype) AS cuts_on_cast,
            a.atttypid = 'bpchar'::regtype AS padded
       FROM pg_attribute a
      WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY a.attnum`,
    [label],
  );
  return rows.map((row) => ({
    name: row.name,
    type: row.type,
    bareType: row.bare_type,
    cutsOnCast: row.cuts_on_cast === "t",
    padded: row.padded === "t",
  }));
}

interface UniqueKey {
  readonly primary: boolean;
  readonly columns: string[];
}

async function readUniqueKeys(client: Client, label: string): Promise<UniqueKey[]> {
  const { rows } = await client.query(
    `SELECT i.indisprimary AS primary, to_json(array_agg(a.attname ORDER BY k.n)) AS columns
       FROM pg_index i
       CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
        AND i.indexprs IS NULL AND k.n <= i.indnkeyatts
      GROUP BY i.indexrelid, i.indisprimary`,
    [label],
  );
  return rows.map((row) => ({ primary: row.primary === "t", columns: JSON.parse(row.columns) as string[] }));
}

function requireUsableKey(label: string, key: readonly string[], request: SinkRequest, uniqueKeys: UniqueKey[]): void {
  requireKeyInQuery(key, request.columns);
  const wanted = [...key].sort().join("\0");
  if (uniqueKeys.some(({ columns }) => [...columns].sort().join("\0") === wanted)) return;
  const columns = key.map(quoteIdentifier).join(", ");
  throw new VitrinaError("KEY_NOT_UNIQUE_IN_TARGET", `${label} has no unique index on exactly (${columns}).`);
}

function requireKeyInQuery(key: readonly string[], columns: SinkRequest["columns"]): void {
  const missing = key.find((name) => !columns.some((column) => column.name === name));
  if (missing === undefined) return;
  throw new VitrinaError(
    "KEY_NOT_IN_QUERY",
    `The query returns no column ${quoteIdentifier(missing)}, which is in the key.`,
  );
}
