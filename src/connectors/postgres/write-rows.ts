import { plural } from "../../domain/counted.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { quoteTable } from "../../postgres/identifiers.ts";
import { TABLE_ERRORS } from "./errors.ts";
import { insertInto, mergeInto, rowsDiffer, sameKey, updateIn } from "./merge-statement.ts";
import type { TargetTable } from "./target-table.ts";

/**
 * What reaches the target's own rows goes through here. A trigger may leave any of it out without an error; then fewer
 * rows are touched than there were to touch. That alone is no proof: a trigger may also do the work elsewhere below the
 * target, and others may write at the same moment. So the target is asked again.
 */

/** Writes the rows of `source` that are new or differ, and returns how many these are. */
export async function mergeRows(client: Client, table: TargetTable, source: string): Promise<number> {
  const target = quoteTable(table.name);
  if (!table.mayLeaveRowsOut) return (await client.query(mergeInto(target, source, table))).rowCount ?? 0;
  const joined = (join: "LEFT JOIN" | "JOIN", condition: string): string =>
    `${source} AS s ${join} ${target} AS t ON ${sameKey(table.key, "t", "s")} WHERE ${condition}`;
  const absent = joined("LEFT JOIN", "t.ctid IS NULL");
  const stale = joined("JOIN", rowsDiffer(table, "t", "s"));
  const [added, changed] = [await count(client, absent), await count(client, stale)];
  const { rowCount: updated } = await client.query(updateIn(target, source, table));
  await client.query(insertInto(target, source, table));
  const leftOut = await count(client, absent);
  if (leftOut > 0) throw leavesOut(target, leftOut, "not there after writing");
  const unchanged = changed - (updated ?? 0);
  if (unchanged > 0 && (await count(client, stale)) > 0) throw leavesOut(target, unchanged, "as it was before writing");
  return added + changed;
}

/** Deletes the rows `t` of the target that meet the condition, which were counted. */
export async function deleteRows(
  client: Client,
  table: TargetTable,
  condition: string,
  counted: number,
): Promise<void> {
  const target = quoteTable(table.name);
  const doomed = `${target} AS t WHERE ${condition}`;
  const { rowCount: deleted } = await client.query(`DELETE FROM ${doomed}`);
  if (!table.mayLeaveRowsOut || (deleted ?? 0) >= counted) return;
  const left = await count(client, doomed);
  if (left > 0) throw leavesOut(target, left, "still there after deleting", UNDELETED);
}

/** Deletes the rows of the target that have one of the keys, each of which comes once. Returns how many these are. */
export async function deleteByKey(client: Client, table: TargetTable, keys: string): Promise<number> {
  const target = quoteTable(table.name);
  const isSame = sameKey(table.key, "t", "k");
  const doomed = `${target} AS t JOIN ${keys} AS k ON ${isSame}`;
  const counted = table.mayLeaveRowsOut ? await count(client, doomed) : 0;
  const { rowCount } = await client.query(`DELETE FROM ${target} AS t USING ${keys} AS k WHERE ${isSame}`);
  const deleted = rowCount ?? 0;
  if (deleted >= counted) return deleted;
  const left = await count(client, doomed);
  if (left > 0) throw leavesOut(target, left, "still there after deleting", UNDELETED);
  return counted;
}

const UNDELETED = "Let the trigger allow it, or load in incremental mode, which deletes nothing.";

async function count(client: Client, from: string): Promise<number> {
  const { rows } = await client.query<{ n: string }>(`SELECT count(*) AS n FROM ${from}`);
  return Number(rows[0]?.n);
}

function leavesOut(target: string, rows: number, how: string, hint?: string): VitrinaError {
  const what = `${plural(rows, "row is", "rows are")} ${rows === 1 ? how : how.replace("it was", "they were")}`;
  const message = `A trigger of ${target} leaves rows out: ${what}.`;
  return new VitrinaError(TABLE_ERRORS.ROWS_LEFT_OUT, message, hint === undefined ? {} : { hint });
}
