import { addedParts, type SourceMark, sourceChange } from "../domain/source-mark.ts";
import type { PipelineState } from "../meta-store/ports/state.ts";
import type { OpenRun } from "./run-context.ts";
import type { UsableState } from "./target-loss.ts";

/**
 * The checkpoint of an incremental load as this run may use it. In a source with another history, rows may lie before
 * the position without ever having been read: numbers were reused, or timestamps are old. Reading everything again is
 * merely slow. A full load needs no such care: one that is continued is followed by another that reads everything.
 */
export async function requireSourceOf(run: OpenRun, usable: UsableState): Promise<UsableState> {
  const { parts, pipeline, scope, commit, report, plan, source, writer } = run;
  const { id, incremental_key: key } = pipeline;
  if (scope !== "after_cursor" || key === null) return usable;
  const { sourceMark } = usable.state;
  const now = await source.takeMark(plan.readerQuery, key);
  const change = await changeSince(usable.state, now, (added, value) =>
    source.partsReachBack(plan.readerQuery, key, added, value),
  );
  if (change === undefined) {
    await commit.noteSource(now);
    return usable;
  }
  await writer.commits.kept?.forget();
  await commit.startOver();
  await commit.noteSource(now);
  const startsOver = `${change}: everything is read again.`;
  report.log.warn({ before: sourceMark, now }, startsOver);
  return { state: await parts.store.state.get(id), startsOver };
}

async function changeSince(
  { sourceMark: before, scanPosition, watermark, watermarkFingerprint }: PipelineState,
  now: SourceMark,
  reachBack: (parts: ReturnType<typeof addedParts>, value: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (before === null || (scanPosition === null && watermarkFingerprint === null)) return undefined;
  const change = sourceChange(before, now);
  if (change !== undefined) return change;
  const parts = addedParts(before, now);
  const value = scanPosition?.[0] ?? watermark.value;
  if (parts.length === 0 || value === null || !(await reachBack(parts, value))) return undefined;
  return "The table of the incremental key has a new part with older rows";
}
