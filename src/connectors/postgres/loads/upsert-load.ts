import type { Client } from "../../../postgres/connection.ts";
import { sqlState } from "../../../postgres/errors.ts";
import { quoteTable } from "../../../postgres/identifiers.ts";
import { mergeInto, SEEK_BY_KEY } from "../merge-statement.ts";
import { columnDefinitions, nameList, type TargetTable } from "../target-table.ts";
import { mergeRows } from "../write-rows.ts";
import type { TableLoad } from "./load.ts";

const UNIQUE_VIOLATION = "23505";

/** Each batch goes straight into the target: for incremental loads. */
export function upsertLoad(table: TargetTable): TableLoad {
  const target = quoteTable(table.name);
  const names = nameList(table.columns);
  const primaryKey = `PRIMARY KEY (${nameList(table.key)})`;
  const create = async (client: Client): Promise<void> => {
    await client.query(`CREATE TABLE IF NOT EXISTS ${target} (${columnDefinitions(table.columns)}, ${primaryKey})`);
  };

  /** The target was empty before the first batch, and no key has come twice since. */
  let allNew: boolean | undefined;
  const isEmpty = async (client: Client): Promise<boolean> => {
    const { rows } = await client.query<{ empty: string }>(`SELECT NOT EXISTS (SELECT FROM ${target}) AS empty`);
    return rows[0]?.empty === "t";
  };

  /** Skips looking up each row in the target, a third of the work; false when one was already there. */
  const insertNew = async (client: Client, relation: string): Promise<boolean> => {
    try {
      const insert = `INSERT INTO ${target} (${names}) SELECT ${names} FROM ${relation} AS s`;
      await client.query(`SAVEPOINT fresh; ${insert}; RELEASE SAVEPOINT fresh`);
      return true;
    } catch (error) {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      await client.query("ROLLBACK TO SAVEPOINT fresh");
      return false;
    }
  };

  return {
    name: "upsert",
    canResume: async () => true,
    batchSettings: SEEK_BY_KEY,
    ...(!table.exists && { begin: create }),

    trialOf: (relation) => mergeInto(target, relation, table),

    async apply(client, { rows: { relation, distinct, duplicates } }) {
      allNew ??= !table.mayLeaveRowsOut && (await isEmpty(client));
      allNew &&= await insertNew(client, relation);
      const written = allNew ? distinct : await mergeRows(client, table, relation);
      return { rows_written: written, rows_unchanged: distinct - written, rows_deduplicated: duplicates };
    },

    finish: async () => ({ rows_deleted: 0 }),
  };
}
