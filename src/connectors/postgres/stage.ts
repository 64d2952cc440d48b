import type { ScanPosition } from "../../domain/checkpoint.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { extended } from "./read-session.ts";
import { columnDefinitions, nameList, type TargetTable } from "./target-table.ts";

/** Every batch first lands in a temporary table with the target's types; from there it is applied by SQL. */
export const STAGE = "pg_temp.vitrina_stage";

export async function createStage(client: Client, { columns }: TargetTable, forReader: boolean): Promise<void> {
  const grant = forReader ? `; GRANT INSERT, SELECT ON ${STAGE} TO vitrina_reader` : "";
  await client.query(`CREATE TEMP TABLE vitrina_stage (${columnDefinitions(columns)}) ON COMMIT PRESERVE ROWS${grant}`);
}

/** Of several rows with one key the last in reading order counts: `ctid` grows as rows arrive. */
export function lastOfEachKey({ columns, key }: TargetTable, relation = STAGE): string {
  const keys = nameList(key);
  return `(SELECT DISTINCT ON (${keys}) ctid, ${nameList(columns)} FROM ${relation} AS r ORDER BY ${keys}, ctid DESC)`;
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
    relation: duplicates === 0 ? STAGE : lastOfEachKey(table),
    distinct: Number(distinct),
    duplicates,
    position: values.map((value) => value ?? ""),
  };
}
