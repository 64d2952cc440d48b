import { quoteTable } from "../../../postgres/identifiers.ts";
import { mergeInto } from "../merge-statement.ts";
import { inspectStage } from "../stage.ts";
import { columnDefinitions, nameList, type TargetTable } from "../target-table.ts";
import type { Load } from "./load.ts";

/** Each batch goes straight into the target: for incremental loads. */
export function upsertLoad(table: TargetTable): Load {
  const target = quoteTable(table.name);
  return {
    name: "upsert",
    canResume: async () => true,

    async begin(client) {
      if (table.exists) return;
      await client.query(
        `CREATE TABLE IF NOT EXISTS ${target} (${columnDefinitions(table.columns)}, PRIMARY KEY (${nameList(table.key)}))`,
      );
    },

    async apply(client) {
      const { relation, distinct, duplicates } = await inspectStage(client, table);
      const { rowCount } = await client.query(mergeInto(target, relation, table));
      const written = rowCount ?? 0;
      return { rows_written: written, rows_unchanged: distinct - written, rows_deduplicated: duplicates };
    },

    applyRange: async () => undefined,
    finish: async () => ({ rows_deleted: 0 }),
  };
}
