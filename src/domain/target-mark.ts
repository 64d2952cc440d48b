import { z } from "zod";
import { rowsFingerprint } from "./checkpoint.ts";
import type { PipelineConfig } from "./pipeline.ts";

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
  /** Of those, what tells each from another one of its name, as pairs. Absent: not known. */
  columnIds: z
    .array(z.tuple([z.string(), z.string()]))
    .readonly()
    .optional(),
  /** The `rowsFingerprint` of whoever wrote it last. Absent: not known. */
  writtenBy: z.string().optional(),
});
export type TargetMark = Readonly<z.infer<typeof targetMarkSchema>>;

type WholeLoss = "missing" | "replaced" | "emptied" | "rewritten" | "behind";

interface LostColumns {
  readonly lostColumns: readonly string[];
}

export type TargetLoss = WholeLoss | LostColumns;

const WORDS: Record<WholeLoss, string> = {
  missing: "is gone",
  replaced: "is not the one that was written before: it was dropped and recreated, or swapped",
  emptied: "was emptied by somebody",
  rewritten:
    "has no row as it was written before: it was rewritten, as for another type of a column, or emptied and filled",
  behind: "is older than the checkpoint: its database was restored from a backup, or is another one",
};

export function describeLoss(target: string, loss: TargetLoss): string {
  if (typeof loss === "string") return `${target} ${WORDS[loss]}`;
  const names = quoted(loss.lostColumns);
  return `${target} has lost ${names}: dropped, and one of that name that is there now was added later`;
}

/**
 * A column that was dropped and added again is empty in every row that is not written again, although it has its name. One
 * of which no mark was taken was gone when the others were marked.
 */
export function columnsLostSince(
  { columns, columnIds }: TargetMark,
  now: readonly (readonly [name: string, id: string])[],
): LostColumns | undefined {
  if (columnIds === undefined) return undefined;
  const [before, found] = [new Map(columnIds), new Map(now)];
  const written = columns ?? [...before.keys()];
  const lostColumns = written.filter((name) => found.has(name) && found.get(name) !== before.get(name));
  return lostColumns.length === 0 ? undefined : { lostColumns };
}

/**
 * What was written since a checkpoint by this pipeline itself, as it was configured for a while, in words. Where it has
 * become again what it was, the checkpoint is its own, and nothing else tells that the target has other rows now.
 */
export function writtenOtherwise({ target, writtenBy }: TargetMark, config: PipelineConfig): string | undefined {
  if (target !== undefined && target !== config.target_table) {
    return `The pipeline has written another target, ${target}, since the checkpoint`;
  }
  if (writtenBy === undefined || writtenBy === rowsFingerprint(config)) return undefined;
  return `The pipeline has written ${config.target_table} with another query or key since the checkpoint`;
}

/** A load that continues after a position would leave these columns empty in every row before it. */
export function columnsSince({ columns: before }: TargetMark, columns: readonly string[]): readonly string[] {
  return before === undefined ? [] : columns.filter((name) => !before.includes(name));
}

export function describeNewColumns(target: string, names: readonly string[]): string {
  return `The rows of ${target} before the checkpoint were written without ${quoted(names)}, which the query returns now`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}
