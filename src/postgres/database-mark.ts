import { randomBytes } from "node:crypto";
import type { SqlSession } from "../domain/sql-session.ts";

/**
 * Whether two sessions are in the same database. Names and identifiers do not prove it: a standby, a promoted replica and
 * a restored disk have those of their original. A lock does, because it is only visible where it is held, and a standby
 * has locks of its own, too. Its number is random, so that it cannot be confused with anybody else's lock.
 */
export type DatabaseMark = string;

/** Puts a mark into the session's database, for as long as the session lasts. */
export async function markDatabase(session: SqlSession): Promise<DatabaseMark> {
  const mark = BigInt.asIntN(64, randomBytes(8).readBigUInt64BE()).toString();
  await session.query("SELECT pg_advisory_lock($1::bigint)", [mark]);
  return mark;
}

/** Shared, so that two sessions looking at once do not mistake each other for the mark; released at the end of the transaction. */
export async function seesMark(session: SqlSession, mark: DatabaseMark): Promise<boolean> {
  const { rows } = await session.query(
    "SELECT CASE WHEN pg_try_advisory_xact_lock_shared($1::bigint) THEN 'free' ELSE 'held' END AS mark",
    [mark],
  );
  return rows[0]?.["mark"] === "held";
}
