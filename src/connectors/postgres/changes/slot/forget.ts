import type { ChangesFrom } from "../../../../domain/follow.ts";
import type { SqlSession } from "../../../../domain/sql-session.ts";
import { sqlState } from "../../../../postgres/errors.ts";
import type { WatchedPosition } from "../../../follower.ts";
import { lockSlot, peekError } from "./peek.ts";
import { scanBehind } from "./scan.ts";
import { lsnNumber, lsnText, readSnapshotText } from "./snapshot.ts";

/** Moving the slot, so that the server can let go of WAL. */

const NOW = `
  SELECT s.confirmed_flush_lsn::text AS confirmed, pg_current_wal_flush_lsn()::text AS flushed,
         pg_current_snapshot()::text AS snapshot
    FROM pg_replication_slots s
   WHERE s.slot_name = $1 AND s.wal_status <> 'lost' AND NOT pg_is_in_recovery()`;

/** The slot, or the right to use it, is gone: the runs say so. */
const NOT_THERE = ["42704", "42501", "55000"];

/**
 * Up to the least place of all positions, so that whoever has old positions can only move it less far. A position that is
 * further behind than the slot may keep is passed over, as one that was lost before. Returns the pipelines of the former.
 */
export async function advanceSlot(
  session: SqlSession,
  { name, keepBytes }: Extract<ChangesFrom, { kind: "slot" }>,
  positions: readonly WatchedPosition[],
): Promise<readonly string[]> {
  const { rows } = await session.query(NOW, [name]);
  const { confirmed, flushed, snapshot } = (rows[0] ?? {}) as Record<string, string | null>;
  if (confirmed == null || flushed == null || snapshot == null) return [];
  const readable = positions.flatMap(({ pipelineId, position }) => {
    // Others compare everything in any case.
    if (position.fingerprint["slot"] !== name || position.lsn === undefined) return [];
    const lsn = lsnNumber(position.lsn);
    return lsn < lsnNumber(confirmed) ? [] : [{ pipelineId, lsn }];
  });
  // Beyond the end of the WAL: the server has gone back, and the runs will say so.
  if (readable.length === 0 || readable.some(({ lsn }) => lsn > lsnNumber(flushed))) return [];
  const far = readable.filter(({ lsn }) => lsnNumber(flushed) - lsn > BigInt(keepBytes));
  const near = readable.filter((one) => !far.includes(one));
  const least =
    near.length > 0 ? leastOf(near.map(({ lsn }) => lsn)) : await placeOfNow(session, name, snapshot, flushed);
  if (least > lsnNumber(confirmed)) await advance(session, name, lsnText(least));
  return far.map(({ pipelineId }) => pipelineId);
}

function leastOf(lsns: readonly bigint[]): bigint {
  return lsns.reduce((least, lsn) => (lsn < least ? lsn : least));
}

/** A first run takes the slot's place for one before which everything is visible, so it must not be moved any further. */
async function placeOfNow(session: SqlSession, slot: string, snapshot: string, flushed: string): Promise<bigint> {
  const { firstInvisible } = await scanBehind(session, slot, readSnapshotText(snapshot), [], []);
  return firstInvisible ?? lsnNumber(flushed);
}

async function advance(session: SqlSession, slot: string, to: string): Promise<void> {
  await lockSlot(session, slot);
  try {
    // Somebody else may have moved it meanwhile, and it cannot go back.
    await session.query(
      `SELECT pg_replication_slot_advance(s.slot_name, $2::pg_lsn) FROM pg_replication_slots s
        WHERE s.slot_name = $1 AND s.confirmed_flush_lsn < $2::pg_lsn`,
      [slot, to],
    );
  } catch (error) {
    if (NOT_THERE.includes(sqlState(error) ?? "")) return;
    throw peekError(error, slot);
  }
}
