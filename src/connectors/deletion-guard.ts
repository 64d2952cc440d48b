import { count, plural } from "../domain/counted.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { DeletionGuard, SinkWriter, TargetKey } from "./sink.ts";

/** A source that suddenly shrinks is more likely broken than right: a person decides. */
export function requireFewDeletions(
  label: string,
  { allowEmpty, maxDeletePercent }: DeletionGuard,
  { existing, deleted }: { existing: number; deleted: number },
  remaining: number,
): void {
  if (existing === 0 || deleted === 0) return;
  if (remaining === 0) {
    if (allowEmpty) return;
    throw new VitrinaError(
      "SOURCE_EMPTY",
      `The load brought no rows. It would have emptied ${label}, which has ${plural(existing, "row")}, and stopped before that.`,
    );
  }
  const percent = (100 * deleted) / existing;
  if (percent <= maxDeletePercent) return;
  throw new VitrinaError(
    "TOO_MANY_DELETIONS",
    `The load would delete ${count(deleted)} of ${plural(existing, "row")} of ${label} (${percent.toFixed(0)} %, at most ${maxDeletePercent} % are allowed), and stopped before that.`,
  );
}

/**
 * The same for keys whose rows are about to be written or deleted, before the first of them is. `findPresent` tells, part
 * by part, which of them the source still has. Where the target may lose all of them, as it mostly may a few, that is not
 * asked, and the target is counted only until this is certain.
 */
export async function requireAllowedDeletions(
  label: string,
  writer: Pick<SinkWriter, "countUpTo" | "countKeys">,
  guard: DeletionGuard,
  keys: readonly TargetKey[],
  findPresent: () => AsyncIterable<readonly TargetKey[]>,
): Promise<void> {
  const enough = rowsThatMayLose(keys.length, guard);
  if (enough === 0 || (enough !== Infinity && (await writer.countUpTo(enough)) >= enough)) return;
  // The target tells which keys are the same: two texts may be one number.
  let [present, staying] = [0, 0];
  for await (const some of findPresent()) {
    present += some.length;
    staying += await writer.countKeys(some);
  }
  const deleted = (await writer.countKeys(keys)) - staying;
  if (deleted === 0) return;
  const existing = await writer.countUpTo(Number.MAX_SAFE_INTEGER);
  // A key that the source has is in the target already, or is added to it.
  requireFewDeletions(label, guard, { existing, deleted }, existing - deleted + present - staying);
}

/** How many rows a target must have so that it may lose this many, whichever they are. */
function rowsThatMayLose(deleted: number, { allowEmpty, maxDeletePercent }: DeletionGuard): number {
  if (deleted === 0) return 0;
  const byPercent = maxDeletePercent === 0 ? Infinity : Math.ceil((100 * deleted) / maxDeletePercent);
  if (!allowEmpty) return Math.max(deleted + 1, byPercent);
  return maxDeletePercent === 100 ? 0 : byPercent;
}
