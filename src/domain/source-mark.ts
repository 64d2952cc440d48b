/**
 * What tells a source from another one at the same address, or from itself at an earlier moment. It is kept with the
 * checkpoint: the position of an incremental load says that everything before it was read, and that holds for one history
 * of one database only. What is null is not known, and says nothing.
 */
export interface SourceMark {
  /** The server, as all its physical copies name it. */
  readonly system: string | null;
  /** The oid of the database. */
  readonly database: string | null;
  /** Another one since a standby took over, or since the server was restored to a moment. */
  readonly timeline: string | null;
  /** The next transaction of a primary; a standby may be behind another one without any harm. */
  readonly next: string | null;
  /** What shows the incremental key: its oid and where its rows lie. */
  readonly table: string | null;
}

/** Why a position that was reached in `before` means nothing in `now`, for people; undefined where it still holds. */
export function sourceChange(before: SourceMark, now: SourceMark): string | undefined {
  const isOther = (part: keyof SourceMark): boolean =>
    before[part] !== null && now[part] !== null && before[part] !== now[part];
  if (isOther("system") || isOther("database")) return "The source is another database than before";
  if (isOther("timeline")) return "The source was restored, or a standby took its place";
  if (before.next !== null && now.next !== null && BigInt(now.next) < BigInt(before.next)) {
    return "The source was set back to an earlier moment";
  }
  if (isOther("table")) return "The table of the incremental key was made anew, emptied or rewritten in the source";
  return undefined;
}
