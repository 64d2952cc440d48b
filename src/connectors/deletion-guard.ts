import { VitrinaError } from "../domain/error-catalogue.ts";
import type { DeletionGuard } from "./sink.ts";

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
      `The load brought no rows, and ${label} has ${existing}: nothing was changed.`,
    );
  }
  const percent = (100 * deleted) / existing;
  if (percent <= maxDeletePercent) return;
  throw new VitrinaError(
    "TOO_MANY_DELETIONS",
    `The load would delete ${deleted} of ${existing} rows of ${label} (${percent.toFixed(0)} %, at most ${maxDeletePercent} % are allowed): nothing was changed.`,
  );
}
