import type { ScanPosition } from "../../domain/checkpoint.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier, quoteLiteral, quoteTable } from "../../postgres/identifiers.ts";
import { at } from "./query-text.ts";
import { extended } from "./read-session.ts";
import { VALUE_REFUSED } from "./refused-rows.ts";
import { columnDefinitions, nameList, type TargetTable } from "./target-table.ts";

/**
 * Every batch first lands in a temporary table; from there it is applied by SQL. It has the target's types, except
 * where the query has another: there values are staged as they are, and converted on the way into the target.
 */
export const STAGE = "pg_temp.vitrina_stage";

export async function createStage(client: Client, table: TargetTable, forReader: boolean): Promise<void> {
  const grant = forReader ? `; GRANT INSERT, SELECT ON ${STAGE} TO vitrina_reader` : "";
  await client.query(`CREATE TEMP TABLE vitrina_stage ${stageDefinition(table)}${grant}`);
}

/** From the target itself where there is one: the writer need not be allowed to name its types. */
function stageDefinition({ name, exists, columns, conversions }: TargetTable): string {
  if (!exists) return `(${columnDefinitions(columns)}) ON COMMIT PRESERVE ROWS`;
  const values = columns.map((column) => {
    const conversion = conversions.get(column.name);
    const quoted = quoteIdentifier(column.name);
    return conversion === undefined ? `t.${quoted}` : `NULL::${conversion.staged} AS ${quoted}`;
  });
  return `ON COMMIT PRESERVE ROWS AS SELECT ${values.join(", ")} FROM ${quoteTable(name)} AS t WITH NO DATA`;
}

/** The columns as the target stores them. */
function storedColumns({ columns, conversions }: TargetTable): string {
  return columns
    .map(({ name }) => {
      const quoted = quoteIdentifier(name);
      const conversion = conversions.get(name);
      return conversion === undefined ? quoted : `${conversion.convert(quoted)} AS ${quoted}`;
    })
    .join(", ");
}

/** Of several rows with the same key, the last one read counts: `ctid` grows as rows arrive. */
export function lastOfEachKey(table: TargetTable, relation = STAGE): string {
  const keys = nameList(table.key);
  return `(SELECT DISTINCT ON (${keys}) ctid, ${storedColumns(table)} FROM ${relation} AS r ORDER BY ${keys}, ctid DESC)`;
}

function allRows(table: TargetTable): string {
  return table.conversions.size === 0 ? STAGE : `(SELECT ctid, ${storedColumns(table)} FROM ${STAGE})`;
}

/** A single column is sorted, which takes half the time of a hash table. All nulls together are one key. */
function countKeys({ key }: TargetTable): string {
  const keys = nameList(key);
  if (key.length > 1) return `(SELECT count(*) FROM (SELECT DISTINCT ${keys} FROM ${STAGE}) k)`;
  return `count(DISTINCT ${keys}) + (count(*) > count(${keys}))::int`;
}

export interface StagedRows {
  /** What to select from, with a `ctid`: the stage itself when no key occurs twice. */
  readonly relation: string;
  readonly distinct: number;
  readonly duplicates: number;
  /** The ordering columns of the last row. */
  readonly position: ScanPosition;
}

export async function inspectStage(
  client: Client,
  table: TargetTable,
  orderBy: readonly string[] = [],
): Promise<StagedRows> {
  await requireUnchanged(client, table);
  const position = orderBy.map((name) => `, s.${quoteIdentifier(name)}::text`).join("");
  const { rows } = await extended(
    client,
    `SELECT counted.total, counted.keys${position}
       FROM (SELECT count(*) AS total, ${countKeys(table)} AS keys, max(ctid) AS last FROM ${STAGE}) AS counted
       LEFT JOIN ${STAGE} AS s ON s.ctid = counted.last`,
  );
  const [total, distinct, ...values] = rows[0] ?? [];
  const duplicates = Number(total) - Number(distinct);
  return {
    relation: duplicates === 0 ? allRows(table) : lastOfEachKey(table),
    distinct: Number(distinct),
    duplicates,
    // Rows that lack one of them are not read this way.
    position: values.map((value) => value ?? ""),
  };
}

/** The key with the types in which the stage has it. */
export function stagedKey({ key, conversions }: TargetTable): TargetTable["key"] {
  return key.map((column) => ({ ...column, type: conversions.get(column.name)?.staged ?? column.type }));
}

/** Types of which equal values have one text, so that the engine tells a repeated key by itself. */
const WITH_ONE_TEXT = /^(smallint|integer|bigint|uuid|date|boolean|bytea|timestamp.*)$/;

/**
 * How many staged rows have the key that the batch before ended with. Where batches come in the order of the key, it can
 * repeat only there. Texts do not tell: equal numbers or intervals may be written differently.
 */
export async function countKeyBefore(client: Client, table: TargetTable, before: ScanPosition | null): Promise<number> {
  const key = stagedKey(table);
  if (before === null || key.every(({ type }) => WITH_ONE_TEXT.test(type))) return 0;
  const isBefore = at(before, key, "s");
  const { rows } = await extended(client, `SELECT count(*) FROM ${STAGE} AS s WHERE ${isBefore}`);
  return Number(rows[0]?.[0]);
}

/** The server would silently cut or round some values; such a row is refused, on every data path. */
export async function requireUnchanged(client: Client, table: TargetTable, relation = STAGE): Promise<void> {
  const refusal = refusalOf(table);
  if (refusal === undefined) return;
  const { rows } = await extended(client, `SELECT ${refusal} FROM ${relation}`);
  const found = rows[0]?.[0];
  if (found !== null && found !== undefined) throw new VitrinaError("ROW_REFUSED", found);
}

/** An aggregate over staged rows: why some of them are refused, or null; undefined where no row can be. */
function refusalOf({ name: table, conversions }: TargetTable): string | undefined {
  const reasons = [...conversions].flatMap(([name, { refuses, reason }]) => {
    const column = quoteIdentifier(name);
    return refuses === undefined
      ? []
      : [`CASE WHEN bool_or(${refuses(column)}) THEN ${quoteLiteral(`${column} ${reason}`)} END`];
  });
  if (reasons.length === 0) return undefined;
  const sentence = quoteLiteral(`${quoteTable(table)} cannot take a value as it is: `);
  return `${sentence} || nullif(concat_ws('; ', ${reasons.join(", ")}), '') || '.'`;
}

/** For the trial of rows, in PL/pgSQL: refuses them as the stage does. */
export function refuseIn(table: TargetTable, relation: string): string {
  const refusal = refusalOf(table);
  if (refusal === undefined) return "";
  return `
    SELECT ${refusal} INTO _vitrina_message FROM ${relation} AS r;
    IF _vitrina_message IS NOT NULL THEN
      RAISE EXCEPTION USING ERRCODE = '${VALUE_REFUSED}', MESSAGE = _vitrina_message;
    END IF;`;
}
