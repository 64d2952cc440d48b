import type { SqlSession } from "../../../../domain/sql-session.ts";
import type { WatchedPosition } from "../../../follower.ts";
import { peekMessages } from "./peek.ts";
import { isVisible, readSnapshotText, type Snapshot, wholeXid } from "./snapshot.ts";

/** What is behind the slot, for many positions at once. */

export interface WaitingFor {
  changes: number;
  /** When the oldest of them was committed. */
  oldest: Date | undefined;
}

interface Scanned {
  /** In the order of the positions. */
  readonly waiting: readonly WaitingFor[];
  /** Where the first commit is that the snapshot does not show. */
  readonly firstInvisible: bigint | undefined;
}

/** A table that is followed, or a part of it. */
export interface FollowedPart {
  readonly relation: string;
  readonly oid: string;
}

/** In a transaction whose snapshot is `now`. */
export async function scanBehind(
  session: SqlSession,
  slot: string,
  now: Snapshot,
  positions: readonly Pick<WatchedPosition, "position" | "tables">[],
  parts: readonly FollowedPart[],
): Promise<Scanned> {
  const waiting = positions.map((): WaitingFor => ({ changes: 0, oldest: undefined }));
  const places = positions.map(({ position, tables }) => ({
    seen: readSnapshotText(position.snapshot),
    oids: new Set(parts.filter(({ relation }) => tables.includes(relation)).map(({ oid }) => oid)),
  }));
  let firstInvisible: bigint | undefined;
  let unseenBy: readonly number[] = [];
  let committedAt: Date | undefined;
  const count = (oid: string): void => {
    for (const n of unseenBy) {
      const [place, found] = [places[n], waiting[n]];
      if (place?.oids.has(oid) !== true || found === undefined) continue;
      found.changes += 1;
      found.oldest ??= committedAt;
    }
  };
  for await (const message of peekMessages(session, slot)) {
    if (message.kind === "begin") {
      const xid = wholeXid(message.xid, now);
      const isShown = isVisible(xid, now);
      if (!isShown) firstInvisible ??= message.commitLsn;
      unseenBy = isShown ? [...places.keys()].filter((n) => !isVisible(xid, places[n]?.seen as Snapshot)) : [];
      committedAt = message.committedAt;
    } else if (message.kind === "truncate") {
      for (const oid of message.oids) count(oid);
    } else if ("oid" in message && message.kind !== "relation") {
      count(message.oid);
    }
  }
  return { waiting, firstInvisible };
}
