import { z } from "zod";

/**
 * Distinguishes a target from another one of the same name. It is kept with the checkpoint: a position means nothing for
 * a target that no longer holds the rows before it.
 */
export const targetMarkSchema = z.object({
  /** As the pipeline names it. */
  target: z.string().optional(),
  /** The oid of a table, the uuid of an index. Absent in older marks. */
  identity: z.string().optional(),
  /** The file that holds a table's rows; changes when it is truncated, but also when it is rewritten. */
  storage: z.string().optional(),
  /** The next transaction of the target's server when the mark was made: separates older rows from newer ones. */
  asOf: z.string().optional(),
  /** It held rows. Absent: not known. */
  filled: z.boolean().optional(),
  /** Names of the columns that its rows were written with. Absent: not known. */
  columns: z.array(z.string()).readonly().optional(),
});
export type TargetMark = Readonly<z.infer<typeof targetMarkSchema>>;

export type TargetLoss = "missing" | "replaced" | "emptied" | "behind";

const WORDS: Record<TargetLoss, string> = {
  missing: "is gone",
  replaced: "is not the one that was written before: it was dropped and recreated, or swapped",
  emptied: "was emptied by somebody",
  behind: "is older than the checkpoint: its database was restored from a backup, or is another one",
};

export function describeLoss(target: string, loss: TargetLoss): string {
  return `${target} ${WORDS[loss]}`;
}

/** A load that continues after a position would leave these columns empty in every row before it. */
export function columnsSince({ columns: before }: TargetMark, columns: readonly string[]): readonly string[] {
  return before === undefined ? [] : columns.filter((name) => !before.includes(name));
}

export function describeNewColumns(target: string, names: readonly string[]): string {
  const quoted = names.map((name) => `"${name}"`).join(", ");
  return `The rows of ${target} before the checkpoint were written without ${quoted}, which the query returns now`;
}
