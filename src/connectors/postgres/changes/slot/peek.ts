import { VitrinaError } from "../../../../domain/error-catalogue.ts";
import type { SqlSession } from "../../../../domain/sql-session.ts";
import { sqlState } from "../../../../postgres/errors.ts";
import { quoteLiteral } from "../../../../postgres/identifiers.ts";
import { type Message, readMessage } from "./pgoutput.ts";

/** Reading what is behind a slot, and moving the slot: by one session at a time, as the server wants it. */

const literal = (text: string): string => quoteLiteral(text).trim();

/** Together with the name of the slot. */
const SLOT_LOCK = 7_116_506;

/** Until the end of the transaction, or until it goes back to a savepoint before this. */
export async function lockSlot(session: SqlSession, slot: string): Promise<void> {
  // Whoever has it decodes, which may take long and always ends: the time limit of statements is enough.
  await session.query("SET LOCAL lock_timeout = 0");
  await session.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [SLOT_LOCK, slot]);
}

const AT_ONCE = 500;

/**
 * Every message behind the slot up to what is on the server's disk by now, in the order of the commits. Read through a
 * cursor: the server keeps them in a file, so a huge transaction fills nobody's memory. In a transaction; nothing else
 * can be asked meanwhile.
 */
export async function* peekMessages(session: SqlSession, slot: string): AsyncGenerator<Message> {
  await session.query("SAVEPOINT peek");
  try {
    await lockSlot(session, slot);
    await session.query(`DECLARE peeked NO SCROLL CURSOR FOR
      SELECT p.data FROM pg_logical_slot_peek_binary_changes(${literal(slot)}, NULL, NULL,
        'proto_version', '1', 'publication_names', ${literal(slot)}) AS p`);
    for (;;) {
      const { rows } = await session.query(`FETCH ${AT_ONCE} FROM peeked`);
      for (const { data } of rows) yield readMessage(bytesOf(data));
      if (rows.length < AT_ONCE) return;
    }
  } catch (error) {
    throw peekError(error, slot);
  } finally {
    // Lets go of the lock, too. Fails only on a broken connection, which is then reported anyway.
    await session.query("ROLLBACK TO SAVEPOINT peek").catch(() => undefined);
    await session.query("RELEASE SAVEPOINT peek").catch(() => undefined);
  }
}

/** Sessions of the data path give texts. */
function bytesOf(data: unknown): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(String(data).slice(2), "hex");
}

const IN_USE = "55006";
const NOT_THERE = "42704";
const LOST = "55000";

/** The WAL holds changes from a time when the publication was not there: the server will never decode them. */
export class UndecodableChanges extends Error {}

export function peekError(error: unknown, slot: string): unknown {
  const state = sqlState(error);
  const message = error instanceof Error ? error.message : "";
  if (state === IN_USE) {
    const by = /PID (\d+)/.exec(message)?.[1];
    const who = by === undefined ? "somebody else" : `the server process ${by}`;
    return new VitrinaError("DATABASE_BUSY", `The slot ${slot} is being read by ${who}, not by Vitrina.`, {
      cause: error,
    });
  }
  if (state === NOT_THERE && /publication/.test(message)) return new UndecodableChanges(message, { cause: error });
  if (state === NOT_THERE || state === LOST) {
    return new VitrinaError("CHANGES_NOT_RECORDED", `The slot ${slot} cannot be read: ${message}.`, { cause: error });
  }
  return error;
}
