import { randomBytes } from "node:crypto";
import type { SqlSession } from "../domain/sql-session.ts";

/**
 * Whether two sessions are in one database. Names and identifiers do not tell: a standby, a promoted replica and a
 * restored disk have those of their original. A lock does, for it is only known where it is held, and a standby can tell
 * of its own locks, too. The number is drawn for the occasion, so nobody else's lock can be taken for it.
 */
export type DatabaseMark = string;

/** Puts a mark into the session's database, for as long as the session lasts. */
export async function markDatabase(session: SqlSession): Promise<DatabaseMark> {
  const mark = BigInt.asIntN(64, randomBytes(8).readBigUInt64BE()).toString();
  await session.query("SELECT pg_advisory_lock($1::bigint)", [mark]);
  return mark;
}

/** Shared, so that two who look at once do not take each other for the mark; given back at the end of the transaction. */
export async function seesMark(session: SqlSession, mark: DatabaseMark): Promise<boolean> {
  const { rows } = await session.query(
    "SELECT CASE WHEN pg_try_advisory_xact_lock_shared($1::bigint) THEN 'free' ELSE 'held' END AS mark",
    [mark],
  );
  return rows[0]?.["mark"] === "held";
}
