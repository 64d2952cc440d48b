import type { Client } from "../../../postgres/connection.ts";
import { quoteTable } from "../../../postgres/identifiers.ts";
import { requireFewDeletions } from "../../deletion-guard.ts";
import type { DeletionGuard, KeyRange } from "../../sink.ts";
import { rowsDiffer, sameKey } from "../merge-statement.ts";
import { behind, upTo } from "../query-text.ts";
import { countKeyBefore, stagedKey } from "../stage.ts";
import { nameList, type TargetTable } from "../target-table.ts";
import { deleteRows, mergeRows } from "../write-rows.ts";
import type { TableLoad } from "./load.ts";
import { createKeyTable, createLike, dropTables, insertKeys, isMarked, loadTable, markLoad } from "./load-table.ts";

const NAME = "compare and apply";

/**
 * The target exists, and rows arrive in the order of its key. Each batch is compared with its range of the target;
 * only the differences are kept aside, and applied in one transaction at the end. What did not change is not written.
 */
export function compareLoad(table: TargetTable, loadId: string): TableLoad {
  const target = quoteTable(table.name);
  const changed = loadTable(table.name, loadId, "load");
  const gone = loadTable(table.name, loadId, "gone");
  const refused = loadTable(table.name, loadId, "refused");
  const keys = nameList(table.key);

  /** Keeps aside what differs, by one pass over the staged rows and their range of the target. */
  const keepDifferences = (staged: string, range: KeyRange): string => {
    // Numbered names: those of the query may be any.
    const rowNames = table.columns.map((_, index) => `c${index}`).join(", ");
    const keyNames = table.key.map((_, index) => `k${index}`).join(", ");
    return `
      WITH difference (is_gone, ${rowNames}, ${keyNames}) AS (
        SELECT s.ctid IS NULL, ${nameList(table.columns, "s")}, ${nameList(table.key, "t")}
          FROM ${staged} AS s
          FULL JOIN (SELECT t.ctid, ${nameList(table.columns, "t")} FROM ${target} AS t ${within(range, table)}) AS t
            ON ${sameKey(table.key, "t", "s")}
         WHERE s.ctid IS NULL OR t.ctid IS NULL OR ${rowsDiffer(table, "t", "s")}
      ), kept AS (
        INSERT INTO ${quoteTable(changed)} (${nameList(table.columns)})
        SELECT ${rowNames} FROM difference WHERE NOT is_gone RETURNING 1
      ), missed AS (
        INSERT INTO ${quoteTable(gone)} (${keys})
        SELECT ${keyNames} FROM difference WHERE is_gone ON CONFLICT DO NOTHING
      )
      SELECT count(*) AS kept FROM kept`;
  };

  const requireAllowed = async (client: Client, guard: DeletionGuard, deleted: number): Promise<void> => {
    const { rows } = await client.query<{ existing: string; added: string }>(
      `SELECT (SELECT count(*) FROM ${target}) AS existing, (
         SELECT count(*) FROM ${quoteTable(changed)} c
          WHERE NOT EXISTS (SELECT FROM ${target} t WHERE ${sameKey(table.key, "t", "c")})) AS added`,
    );
    const [existing, added] = [Number(rows[0]?.existing), Number(rows[0]?.added)];
    requireFewDeletions(target, guard, { existing, deleted }, existing - deleted + added);
  };

  return {
    name: NAME,
    canResume: (client) => isMarked(client, changed, NAME),
    batchSettings: "",

    async begin(client) {
      await dropTables(client, [changed, gone, refused]);
      await createLike(client, table, changed);
      await createKeyTable(client, table, gone);
      await createKeyTable(client, table, refused);
      await markLoad(client, changed, NAME);
    },

    trialOf: (relation) => `
      INSERT INTO ${quoteTable(changed)} (${nameList(table.columns)})
      SELECT ${nameList(table.columns, "s")} FROM ${relation} AS s
        LEFT JOIN ${target} AS t ON ${sameKey(table.key, "t", "s")}
       WHERE t.ctid IS NULL OR ${rowsDiffer(table, "t", "s")}`,

    keepKeys: (relation) => insertKeys(table, refused, relation),

    async apply(client, { rows: { relation, distinct, duplicates }, range }) {
      const again = await countKeyBefore(client, table, range.after);
      const { rows } = await client.query<{ kept: string }>(keepDifferences(relation, range));
      const written = Number(rows[0]?.kept);
      const unchanged = distinct - written - again;
      return { rows_written: written, rows_unchanged: unchanged, rows_deduplicated: duplicates + again };
    },

    async finish(client, guard) {
      await client.query(
        `DELETE FROM ${quoteTable(gone)} g USING ${quoteTable(refused)} r WHERE ${sameKey(table.key, "g", "r")}`,
      );
      const { rows } = await client.query<{ kept: string; deleted: string }>(
        `SELECT (SELECT count(*) FROM ${quoteTable(changed)}) AS kept, (SELECT count(*) FROM ${quoteTable(gone)}) AS deleted`,
      );
      const [kept, deleted] = [Number(rows[0]?.kept), Number(rows[0]?.deleted)];
      if (deleted > 0) {
        await requireAllowed(client, guard, deleted);
        const isGone = `EXISTS (SELECT FROM ${quoteTable(gone)} g WHERE ${sameKey(table.key, "t", "g")})`;
        await deleteRows(client, table, isGone, deleted);
      }
      if (kept > 0) await mergeRows(client, table, quoteTable(changed));
      await dropTables(client, [changed, gone, refused]);
      return { rows_deleted: deleted };
    },
  };
}

/** Compared in the type of the source: a refused row, whose key is a bound, may not fit the target's. */
function within({ after, upTo: last }: KeyRange, table: TargetTable): string {
  if (last?.length === 0) return "WHERE false";
  const typed = stagedKey(table);
  const bounds = [
    ...(after === null ? [] : [behind(after, typed, "t")]),
    ...(last === null ? [] : [upTo(last, typed, "t")]),
  ];
  return bounds.length === 0 ? "" : `WHERE ${bounds.join(" AND ")}`;
}
