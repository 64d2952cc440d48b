import type { Client } from "../../postgres/connection.ts";
import { columnDefinitions, nameList, type TargetTable } from "./target-table.ts";

/** Every batch first lands in a temporary table with the target's types; from there it is applied by SQL. */
export const STAGE = "pg_temp.vitrina_stage";

export async function createStage(client: Client, { columns }: TargetTable): Promise<void> {
  await client.query(`CREATE TEMP TABLE vitrina_stage (${columnDefinitions(columns)}) ON COMMIT PRESERVE ROWS`);
}

/** Of several rows with one key the last in reading order counts: `ctid` grows as rows arrive. */
function lastOfEachKey({ columns, key }: TargetTable): string {
  const keys = nameList(key);
  return `(SELECT DISTINCT ON (${keys}) ${nameList(columns)} FROM ${STAGE} ORDER BY ${keys}, ctid DESC)`;
}

export interface StagedRows {
  /** What to select from: the stage itself when no key occurs twice. */
  readonly relation: string;
  readonly distinct: number;
  readonly duplicates: number;
}

export async function inspectStage(client: Client, table: TargetTable): Promise<StagedRows> {
  const keys = nameList(table.key);
  const { rows } = await client.query<{ total: string; distinct: string }>(
    `SELECT count(*) AS total, (SELECT count(*) FROM (SELECT DISTINCT ${keys} FROM ${STAGE}) k) AS distinct FROM ${STAGE}`,
  );
  const total = Number(rows[0]?.total);
  const distinct = Number(rows[0]?.distinct);
  return { relation: total === distinct ? STAGE : lastOfEachKey(table), distinct, duplicates: total - distinct };
}
