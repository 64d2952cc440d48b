import { z } from "zod";

const markedTableSchema = z.object({
  oid: z.string(),
  /** The file that holds its rows; changes when it is truncated or rewritten. Null if it has none, or changes it routinely. */
  place: z.string().nullable(),
  /** The table that it is a partition of, or inherits from. */
  partOf: z.string().nullable(),
});
export type MarkedTable = Readonly<z.infer<typeof markedTableSchema>>;

/**
 * Distinguishes a source from another one at the same address, and from its own earlier state. It is kept with the
 * checkpoint: the position of an incremental load says that everything before it was read, and that holds for one history
 * of one database only. A null is unknown, and is not compared.
 */
export const sourceMarkSchema = z.object({
  /** Identifies the server; its physical copies have the same. */
  system: z.string().nullable(),
  /** The oid of the database. */
  database: z.string().nullable(),
  /** Changes when a standby takes over, or when the server is restored to a point in time. */
  timeline: z.string().nullable(),
  /** The next transaction of a primary. Null for a standby, which may harmlessly lag behind another one. */
  next: z.string().nullable(),
  /** The relations that the incremental key comes from: views, the tables below them, and their partitions. Marks of earlier versions have none. */
  tables: z.array(markedTableSchema).readonly().nullable().default(null),
});
export type SourceMark = Readonly<z.infer<typeof sourceMarkSchema>>;

/** Why a position reached in `before` is meaningless in `now`, for people; undefined if it still holds. */
export function sourceChange(before: SourceMark, now: SourceMark): string | undefined {
  const isOther = (part: "system" | "database" | "timeline"): boolean =>
    before[part] !== null && now[part] !== null && before[part] !== now[part];
  if (isOther("system") || isOther("database")) return "The source is a different database than before";
  if (isOther("timeline")) return "The source was restored, or a standby took its place";
  if (before.next !== null && now.next !== null && BigInt(now.next) < BigInt(before.next)) {
    return "The source was reset to an earlier point in time";
  }
  if (tablesDiffer(before, now))
    return "The table of the incremental key was recreated, emptied or rewritten in the source";
  return undefined;
}

/** A dropped partition took its rows with it, as a DELETE does; an added one may bring only new rows. */
function tablesDiffer({ tables: before }: SourceMark, { tables: now }: SourceMark): boolean {
  if (before === null || now === null) return false;
  return now.some(({ oid, place, partOf }) => {
    const known = before.find((table) => table.oid === oid);
    return known === undefined ? partOf === null : known.place !== place;
  });
}

/** Partitions and child tables that were not there before. */
export function addedParts({ tables: before }: SourceMark, { tables: now }: SourceMark): readonly MarkedTable[] {
  if (before == null || now == null) return [];
  return now.filter(({ oid, partOf }) => partOf !== null && !before.some((table) => table.oid === oid));
}
