import type { FollowPosition } from "../../../domain/follow.ts";
import type { Client } from "../../../postgres/connection.ts";
import { askIfShown } from "../source-mark.ts";
import { lsnNumber } from "./slot/snapshot.ts";

/**
 * Whether a server still has what it had at an earlier position. The disk may have been put back to an older copy of it, which
 * makes transactions of its own under the same numbers; nothing in the catalogue tells. But the server was started for it,
 * and the WAL that it found then ended before the position. Where the WAL ended is told by the checkpoint that is made at
 * each start or before it, while nobody can write: it begins where it ends. Later checkpoints take its place, so somebody
 * has to look soon; the watcher does, once a second. The same tells of commits that were seen and not yet on the disk when
 * the server crashed (synchronous_commit = off).
 *
 * What cannot be known: whether an older copy ran beyond the position, and was started once more before anybody looked.
 */
export interface ServerHistory {
  /** When it was started, and its counters were: after the crash of a session these begin again, and it goes on otherwise. */
  readonly start: string;
  /** The end of its WAL. What any snapshot of before shows was written by then. */
  readonly written: string;
  /** Where the latest checkpoint is. */
  readonly checkpoint: string;
  /** t: nobody could write while it was made. */
  readonly isOfStart: string;
}

/** With little WAL (`minimal`), other checkpoints look the same. A standby starts from where it was and catches up. */
const HISTORY = `
  SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), (SELECT extract(epoch FROM max(s.stats_reset)) FROM pg_stat_slru s)) AS start,
         pg_current_wal_insert_lsn()::text AS written, c.checkpoint_lsn::text AS checkpoint,
         CASE WHEN c.redo_lsn = c.checkpoint_lsn AND current_setting('wal_level') <> 'minimal' THEN 't' ELSE 'f' END AS "isOfStart"
    FROM pg_control_checkpoint() AS c WHERE NOT pg_is_in_recovery()`;

/** Undefined: the server does not reveal it, or is a standby. */
export async function readServerHistory(client: Client): Promise<ServerHistory | undefined> {
  const { start, written, checkpoint, isOfStart } = await askIfShown<Record<keyof ServerHistory, string>>(
    client,
    HISTORY,
  );
  if (start === undefined || written === undefined || checkpoint === undefined || isOfStart === undefined) {
    return undefined;
  }
  return { start, written, checkpoint, isOfStart };
}

/** Why what was there at a position may not be there any more, in one sentence; undefined: it is. */
export function whyHistoryIsLost(
  { fingerprint, written }: FollowPosition,
  now: ServerHistory | undefined,
): string | undefined {
  const before = fingerprint["start"];
  if (now === undefined || before === undefined || written === undefined || before === now.start) return undefined;
  if (lsnNumber(now.checkpoint) < lsnNumber(written)) {
    return "The source was started from an earlier state: an older copy of its disk was put back, or a crash took its latest transactions.";
  }
  if (now.isOfStart === "t") return undefined;
  return "The source was started again, and has run for too long to tell whether it was started from an earlier state.";
}
