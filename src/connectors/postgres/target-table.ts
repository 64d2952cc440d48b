import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { SinkRequest } from "../sink.ts";
import type { OrderColumn } from "./query-text.ts";
import { orderColumns } from "./read-session.ts";
import {
  type Conversions,
  conversionsInto,
  type ExistingColumn,
  leftColumnWarnings,
  looseKeyProblems,
  mappedTypeWarnings,
  newColumn,
  newColumnProblems,
  readColumns,
  typeProblems,
} from "./target-columns.ts";
import { readTargetRules, schemaProblems } from "./target-rights.ts";
import { sortAlike } from "./type-fit.ts";

/** The target as a load needs it: the query's columns with the types they have there, and the key. */
export interface TargetTable {
  readonly name: TableName;
  readonly exists: boolean;
  readonly columns: readonly Column[];
  /** For columns whose values arrive in another type. */
  readonly conversions: Conversions;
  readonly key: readonly OrderColumn[];
  /** A range of the key is the same keys here and at the source, if texts are compared by bytes. */
  readonly sortsAlike: boolean;
  /** True when such ranges can use the key's index. */
  readonly rangesUseIndex: boolean;
  /** A trigger sees each row before it is written, and may leave it out. */
  readonly mayLeaveRowsOut: boolean;
  /** For the log of a run. */
  readonly warnings: readonly VitrinaError[];
}

/** What a load needs of its target. */
interface TableQuestion extends Pick<SinkRequest, "key" | "createTarget" | "addColumns"> {
  /** `undefined`: not known yet, so they are not compared. */
  readonly columns: readonly Column[] | undefined;
  /** `undefined`: it is only read. */
  readonly load?: SinkRequest["load"] | undefined;
}

/** The target as it is, and everything that is wrong with it; nothing is changed. */
export interface TargetInspection {
  readonly exists: boolean;
  /** Those of the table; empty when there is none. */
  readonly existing: readonly ExistingColumn[];
  /** In the query, but not in the table. */
  readonly missing: readonly Column[];
  /** In the table, but not in the query. */
  readonly extra: readonly string[];
  readonly key: readonly string[];
  readonly rangesUseIndex: boolean;
  readonly mayLeaveRowsOut: boolean;
  /** A load fails with the first of them. */
  readonly problems: readonly VitrinaError[];
  /** A load may still succeed. */
  readonly warnings: readonly VitrinaError[];
}

type TableRequest = Pick<SinkRequest, "columns" | "key" | "createTarget" | "addColumns"> & Pick<TableQuestion, "load">;

/** Finds the target and everything about it that a load needs. Changes nothing but adding columns, where allowed. */
export async function readTargetTable(client: Client, name: TableName, request: TableRequest): Promise<TargetTable> {
  const inspection = await inspectTargetTable(client, name, request);
  const [problem] = inspection.problems;
  if (problem !== undefined) {
    await requireSettled(client, name, request, problem);
    throw problem;
  }
  if (inspection.missing.length === 0) return targetTableOf(client, name, request.columns, inspection);
  await addColumns(client, name, inspection.missing.map(newColumn));
  const existing = await readColumns(client, quoteTable(name));
  return targetTableOf(client, name, request.columns, { ...inspection, existing });
}

/** A table that is dropped or renamed while it is inspected seems to lack its columns: that is worth a retry. */
async function requireSettled(
  client: Client,
  name: TableName,
  request: TableRequest,
  problem: VitrinaError,
): Promise<void> {
  const again = await inspectTargetTable(client, name, request);
  if (again.problems[0]?.message === problem.message) return;
  throw new VitrinaError("TARGET_CHANGED", `${quoteTable(name)} was changed while the run opened it.`);
}

export async function inspectTargetTable(
  client: Client,
  name: TableName,
  question: TableQuestion,
): Promise<TargetInspection> {
  const label = quoteTable(name);
  const kind = await relationKind(client, label);
  if (kind === "table") return inspectExisting(client, name, question);
  const { key, columns, load } = question;
  const wrong = missingTargetProblems(label, kind, question);
  const added = wrong.length > 0 ? [] : (columns ?? []);
  const ofTypes = await newColumnProblems(client, label, added.map(newColumn));
  return {
    exists: false,
    existing: [],
    missing: [],
    extra: [],
    key,
    rangesUseIndex: false,
    mayLeaveRowsOut: false,
    problems: [
      ...wrong,
      ...(wrong.length > 0 ? [] : await schemaProblems(client, name, load, false)),
      ...keyInQueryProblems(key, columns),
      ...ofTypes,
    ],
    warnings: mappedTypeWarnings(label, added),
  };
}

function missingTargetProblems(
  label: string,
  kind: "nothing" | "other",
  { createTarget, key }: TableQuestion,
): VitrinaError[] {
  if (kind === "other") {
    const hint = "Choose another target_table: only tables can be written.";
    return [new VitrinaError("TARGET_MISSING", `${label} exists, but it is not a table.`, { hint })];
  }
  if (!createTarget) return [new VitrinaError("TARGET_MISSING", `The target ${label} does not exist.`)];
  if (key.length > 0) return [];
  return [new VitrinaError("KEY_MISSING", `${label} cannot be created without a key.`, { hint: "Set target_key." })];
}

async function inspectExisting(client: Client, name: TableName, question: TableQuestion): Promise<TargetInspection> {
  const label = quoteTable(name);
  const { columns, addColumns: mayAdd, load } = question;
  const existing = await readColumns(client, label);
  const uniqueKeys = await readUniqueKeys(client, label);
  const key = question.key.length > 0 ? question.key : (uniqueKeys.find(({ primary }) => primary)?.columns ?? []);
  const index = uniqueIndexOn(key, uniqueKeys);
  const missing = (columns ?? []).filter((wanted) => !existing.some((column) => column.name === wanted.name));
  const extra = existing.filter((one) => columns !== undefined && !columns.some((wanted) => wanted.name === one.name));
  const required = requiredProblem(label, extra);
  // A trigger may fill such a column.
  const isCertain = !(await hasTriggers(client, label));
  const added = mayAdd ? missing : [];
  const rules = await readTargetRules(client, label, load, added.length > 0);
  return {
    exists: true,
    existing,
    missing,
    extra: extra.map((column) => column.name),
    key,
    rangesUseIndex: index?.byBytes ?? false,
    mayLeaveRowsOut: rules.mayLeaveRowsOut,
    problems: [
      ...rules.problems,
      ...(await schemaProblems(client, name, load, true)),
      ...(mayAdd ? [] : missingColumnProblems(label, missing)),
      ...keyInQueryProblems(key, columns),
      ...keyInTargetProblems(label, key, index),
      ...(isCertain ? required : []),
      ...typeProblems(label, existing, columns ?? []),
      ...(load?.deletes === true ? looseKeyProblems(label, key, existing) : []),
      ...(await newColumnProblems(client, label, added.map(newColumn))),
    ],
    warnings: [
      ...rules.warnings,
      ...(isCertain ? [] : required),
      ...mappedTypeWarnings(label, added),
      ...(question.createTarget || mayAdd ? leftColumnWarnings(label, extra) : []),
    ],
  };
}

/** The table as a load works with it. Only meaningful for an inspection without problems. */
export async function targetTableOf(
  client: Client,
  name: TableName,
  wanted: readonly Column[],
  { exists, existing, key, rangesUseIndex, mayLeaveRowsOut, warnings }: TargetInspection,
): Promise<TargetTable> {
  const typeOf = (column: Column): string =>
    existing.find((known) => known.name === column.name)?.type ?? newColumn(column).type;
  const columns = wanted.map((column) => ({ name: column.name, type: typeOf(column) }));
  // The source reads in its own order; if the target sorts differently, a batch is not a range of it.
  const sortsAlike = wanted.every((column) => !key.includes(column.name) || sortAlike(column.type, typeOf(column)));
  return {
    name,
    exists,
    columns,
    conversions: conversionsInto(existing, wanted),
    key: await orderColumns(client, columns, key),
    sortsAlike,
    rangesUseIndex: rangesUseIndex && sortsAlike,
    mayLeaveRowsOut,
    warnings,
  };
}

async function relationKind(client: Client, label: string): Promise<"table" | "other" | "nothing"> {
  const { rows } = await client.query("SELECT relkind FROM pg_class WHERE oid = to_regclass($1)", [label]);
  const kind = rows[0]?.relkind as string | undefined;
  if (kind === undefined) return "nothing";
  return kind === "r" || kind === "p" ? "table" : "other";
}

async function hasTriggers(client: Client, label: string): Promise<boolean> {
  const { rows } = await client.query(
    "SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND NOT tgisinternal) AS found",
    [label],
  );
  return rows[0]?.found === "t";
}

export function columnDefinitions(columns: readonly Column[]): string {
  return columns.map(({ name, type }) => `${quoteIdentifier(name)} ${type}`).join(", ");
}

export function nameList(columns: readonly { readonly name: string }[], alias?: string): string {
  const prefix = alias === undefined ? "" : `${alias}.`;
  return columns.map(({ name }) => `${prefix}${quoteIdentifier(name)}`).join(", ");
}

async function addColumns(client: Client, name: TableName, missing: readonly Column[]): Promise<void> {
  const additions = missing.map((column) => `ADD COLUMN IF NOT EXISTS ${quoteIdentifier(column.name)} ${column.type}`);
  await client.query(`ALTER TABLE ${quoteTable(name)} ${additions.join(", ")}`);
}

function missingColumnProblems(label: string, missing: readonly Column[]): VitrinaError[] {
  if (missing.length === 0) return [];
  return [new VitrinaError("TARGET_COLUMN_MISSING", `${label} has no column ${quoteNames(missing)}.`)];
}

function requiredProblem(label: string, extra: readonly ExistingColumn[]): VitrinaError[] {
  const required = extra.filter((column) => column.required);
  if (required.length === 0) return [];
  const message = `${label} requires a value for ${quoteNames(required)}, and the query returns none.`;
  return [new VitrinaError("TARGET_COLUMN_REQUIRED", message)];
}

function quoteNames(columns: readonly Column[]): string {
  return columns.map(({ name }) => quoteIdentifier(name)).join(", ");
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

function uniqueIndexOn(key: readonly string[], uniqueKeys: readonly UniqueKey[]): UniqueKey | undefined {
  const wanted = [...key].sort().join("\0");
  return uniqueKeys.find(({ columns }) => [...columns].sort().join("\0") === wanted);
}

function keyInTargetProblems(label: string, key: readonly string[], index: UniqueKey | undefined): VitrinaError[] {
  if (key.length === 0) {
    return [new VitrinaError("KEY_MISSING", `${label} has no primary key, and target_key is empty.`)];
  }
  if (index !== undefined) return [];
  const columns = key.map(quoteIdentifier).join(", ");
  return [new VitrinaError("KEY_NOT_UNIQUE_IN_TARGET", `${label} has no unique index on exactly (${columns}).`)];
}

function keyInQueryProblems(key: readonly string[], columns: readonly Column[] | undefined): VitrinaError[] {
  const missing = key.filter((name) => columns !== undefined && !columns.some((column) => column.name === name));
  if (missing.length === 0) return [];
  const names = missing.map(quoteIdentifier).join(", ");
  const rest = missing.length === 1 ? "which is in the key" : "which are in the key";
  return [new VitrinaError("KEY_NOT_IN_QUERY", `The query returns no column ${names}, ${rest}.`)];
}
