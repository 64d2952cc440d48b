import { quoteTable } from "../../../postgres/identifiers.ts";
import { requireFewDeletions } from "../../deletion-guard.ts";
import { mergeInto, rowsDiffer, SEEK_BY_KEY, sameKey } from "../merge-statement.ts";
import { nameList, type TargetTable } from "../target-table.ts";
import { deleteRows, mergeRows } from "../write-rows.ts";
import type { TableLoad } from "./load.ts";
import { createKeyTable, createLike, dropTables, insertKeys, isMarked, loadTable, markLoad } from "./load-table.ts";

const NAME = "shadow and merge";

/**
 * The target exists, and rows come in any order, or its key sorts by the rules of a language. All rows are loaded into
 * a shadow; at the end one transaction merges it into the target and deletes what the shadow does not have.
 */
export function shadowLoad(table: TargetTable, loadId: string): TableLoad {
  const target = quoteTable(table.name);
  const shadow = loadTable(table.name, loadId, "load");
  const refused = loadTable(table.name, loadId, "refused");
  const label = quoteTable(shadow);
  return {
    name: NAME,
    canResume: (client) => isMarked(client, shadow, NAME),
    batchSettings: SEEK_BY_KEY,

    async begin(client) {
      await dropTables(client, [shadow, refused]);
      await createLike(client, table, shadow);
      await client.query(`ALTER TABLE ${label} ADD PRIMARY KEY (${nameList(table.key)})`);
      await createKeyTable(client, table, refused);
      await markLoad(client, shadow, NAME);
    },

    trialOf: (relation) => mergeInto(label, relation, table),

    keepKeys: (relation) => insertKeys(table, refused, relation),

    async apply(client, { rows: { relation, distinct, duplicates } }) {
      const { rows: counts } = await client.query<{ again: string; same: string }>(
        `SELECT count(*) FILTER (WHERE l.ctid IS NOT NULL) AS again,
                count(*) FILTER (WHERE l.ctid IS NULL AND t.ctid IS NOT NULL AND NOT (${rowsDiffer(table, "t", "s")})) AS same
           FROM ${relation} AS s
           LEFT JOIN ${label} AS l ON ${sameKey(table.key, "l", "s")}
           LEFT JOIN ${target} AS t ON ${sameKey(table.key, "t", "s")}`,
      );
      const again = Number(counts[0]?.again);
      const same = Number(counts[0]?.same);
      await client.query(mergeInto(label, relation, table));
      return { rows_written: distinct - again - same, rows_unchanged: same, rows_deduplicated: duplicates + again };
    },

    async finish(client, guard) {
      const missing = `NOT EXISTS (SELECT FROM ${label} l WHERE ${sameKey(table.key, "l", "t")})
        AND NOT EXISTS (SELECT FROM ${quoteTable(refused)} r WHERE ${sameKey(table.key, "r", "t")})`;
      const { rows } = await client.query<{ existing: string; deleted: string; loaded: string }>(
        `SELECT count(*) AS existing, count(*) FILTER (WHERE ${missing}) AS deleted,
                (SELECT count(*) FROM ${label}) AS loaded FROM ${target} t`,
      );
      const [existing, deleted, loaded] = [rows[0]?.existing, rows[0]?.deleted, rows[0]?.loaded].map(Number) as [
        number,
        number,
        number,
      ];
      requireFewDeletions(target, guard, { existing, deleted }, Math.max(loaded, existing - deleted));
      if (deleted > 0) await deleteRows(client, table, missing, deleted);
      await mergeRows(client, table, label);
      await dropTables(client, [shadow, refused]);
      return { rows_deleted: deleted };
    },
  };
}
