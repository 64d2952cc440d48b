import { quoteTable } from "../../../postgres/identifiers.ts";
import type { DeletionGuard } from "../../sink.ts";
import { mergeInto, rowsDiffer, sameKey } from "../merge-statement.ts";
import { behind, upTo } from "../query-text.ts";
import { inspectStage, STAGE } from "../stage.ts";
import { nameList, type TargetTable } from "../target-table.ts";
import { requireFewDeletions } from "./deletion-guard.ts";
import type { Load } from "./load.ts";
import { dropTables, isMarked, loadTable, markLoad } from "./load-table.ts";

const NAME = "compare and apply";

/**
 * The target exists, and rows arrive in the order of its key. Each batch is compared with its range of the target;
 * only the differences are kept aside, and applied in one transaction at the end. What did not change is not written.
 */
export function compareLoad(table: TargetTable, loadId: string, guard: DeletionGuard): Load {
  const target = quoteTable(table.name);
  const changed = loadTable(table.name, loadId, "load");
  const gone = loadTable(table.name, loadId, "gone");
  const names = nameList(table.columns);
  const keys = nameList(table.key);
  const count = `SELECT (SELECT count(*) FROM ${target}) AS existing, (SELECT count(*) FROM ${quoteTable(gone)}) AS deleted,
    (SELECT count(*) FROM ${quoteTable(changed)} c WHERE NOT EXISTS (SELECT FROM ${target} t WHERE ${sameKey(table.key, "t", "c")})) AS added`;
  return {
    name: NAME,
    canResume: (client) => isMarked(client, changed, NAME),

    async begin(client) {
      await dropTables(client, [changed, gone]);
      await client.query(
        `CREATE TABLE ${quoteTable(changed)} (LIKE ${target} INCLUDING CONSTRAINTS INCLUDING DEFAULTS)`,
      );
      await client.query(`CREATE TABLE ${quoteTable(gone)} AS SELECT ${keys} FROM ${target} WITH NO DATA`);
      await client.query(`ALTER TABLE ${quoteTable(gone)} ADD PRIMARY KEY (${keys})`);
      await markLoad(client, changed, NAME);
    },

    async apply(client) {
      const { relation, distinct, duplicates } = await inspectStage(client, table);
      const { rowCount } = await client.query(
        `INSERT INTO ${quoteTable(changed)} (${names})
         SELECT ${nameList(table.columns, "s")} FROM ${relation} AS s
           LEFT JOIN ${target} AS t ON ${sameKey(table.key, "t", "s")}
          WHERE t.ctid IS NULL OR ${rowsDiffer(table, "t", "s")}`,
      );
      const written = rowCount ?? 0;
      return { rows_written: written, rows_unchanged: distinct - written, rows_deduplicated: duplicates };
    },

    async applyRange(client, range) {
      const bounds = [
        range.after === null ? "" : `AND ${behind(range.after, table.key, "t")}`,
        range.upTo === null ? "" : `AND ${upTo(range.upTo, table.key, "t")}`,
      ];
      await client.query(
        `INSERT INTO ${quoteTable(gone)} (${keys})
         SELECT ${nameList(table.key, "t")} FROM ${target} AS t
          WHERE NOT EXISTS (SELECT FROM ${STAGE} s WHERE ${sameKey(table.key, "t", "s")}) ${bounds.join(" ")}
         ON CONFLICT DO NOTHING`,
      );
    },

    async finish(client) {
      const { rows } = await client.query<{ existing: string; deleted: string; added: string }>(count);
      const [existing, deleted, added] = [rows[0]?.existing, rows[0]?.deleted, rows[0]?.added].map(Number) as [
        number,
        number,
        number,
      ];
      requireFewDeletions(target, guard, { existing, deleted }, existing - deleted + added);
      if (deleted > 0) {
        await client.query(`DELETE FROM ${target} t USING ${quoteTable(gone)} g WHERE ${sameKey(table.key, "t", "g")}`);
      }
      await client.query(mergeInto(target, quoteTable(changed), table));
      await dropTables(client, [changed, gone]);
      return { rows_deleted: deleted };
    },
  };
}
