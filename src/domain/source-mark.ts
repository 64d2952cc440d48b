import { z } from "zod";

const markedTableSchema = z.object({
  oid: z.string(),
  /** Where its rows lie; another place since it was truncated or rewritten. Null for what has none, or changes it at will. */
  place: z.string().nullable(),
  /** The table that it is a partition of, or inherits from. */
  partOf: z.string().nullable(),
});
export type MarkedTable = Readonly<z.infer<typeof markedTableSchema>>;

/**
 * What tells a source from another one at the same address, or from itself at an earlier moment. It is kept with the
 * checkpoint: the position of an incremental load says that everything before it was read, and that holds for one history
 * of one database only. What is null is not known, and says nothing.
 */
export const sourceMarkSchema = z.object({
  /** The server, as all its physical copies name it. */
  system: z.string().nullable(),
  /** The oid of the database. */
  database: z.string().nullable(),
  /** Another one since a standby took over, or since the server was restored to a moment. */
  timeline: z.string().nullable(),
  /** The next transaction of a primary; a standby may be behind another one without any harm. */
  next: z.string().nullable(),
  /** What shows the incremental key, through views down to the tables that have it, and their parts. Marks of earlier versions have none. */
  tables: z.array(markedTableSchema).readonly().nullable().default(null),
});
export type SourceMark = Readonly<z.infer<typeof sourceMarkSchema>>;

/** Why a position that was reached in `before` means nothing in `now`, for people; undefined where it still holds. */
export function sourceChange(before: SourceMark, now: SourceMark): string | undefined {
  const isOther = (part: "system" | "database" | "timeline"): boolean =>
    before[part] !== null && now[part] !== null && before[part] !== now[part];
  if (isOther("system") || isOther("database")) return "The source is another database than before";
  if (isOther("timeline")) return "The source was restored, or a standby took its place";
  if (before.next !== null && now.next !== null && BigInt(now.next) < BigInt(before.next)) {
    return "The source was set back to an earlier moment";
  }
  if (tablesDiffer(before, now))
    return "The table of the incremental key was made anew, emptied or rewritten in the source";
  return undefined;
}

/** A part that is gone has taken its rows with it, as a DELETE does; a part that is new may bring only new rows. */
function tablesDiffer({ tables: before }: SourceMark, { tables: now }: SourceMark): boolean {
  if (before === null || now === null) return false;
  return now.some(({ oid, place, partOf }) => {
    const known = before.find((table) => table.oid === oid);
    return known === undefined ? partOf === null : known.place !== place;
  });
}

/** Partitions and heirs that were not there before. */
export function addedParts({ tables: before }: SourceMark, { tables: now }: SourceMark): readonly MarkedTable[] {
  if (before == null || now == null) return [];
  return now.filter(({ oid, partOf }) => partOf !== null && !before.some((table) => table.oid === oid));
}
