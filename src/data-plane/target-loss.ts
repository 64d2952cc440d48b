import type { SinkWriter } from "../connectors/sink.ts";
import { rowsFingerprint } from "../domain/checkpoint.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { Column } from "../domain/row.ts";
import {
  columnsSince,
  describeLoss,
  describeNewColumns,
  type TargetLoss,
  type TargetMark,
  writtenOtherwise,
} from "../domain/target-mark.ts";
import type { PipelineState } from "../meta-store/ports/state.ts";
import type { OpenRun } from "./run-context.ts";

export interface UsableState {
  readonly state: PipelineState;
  /** Why the checkpoint is not used, in words. */
  readonly startsOver: string | undefined;
}

/**
 * The checkpoint as this run may use it. If the target no longer holds what was written up to it, an incremental
 * load would add only what is new and call that a success: so everything is read again, or a person decides.
 */
export async function requireTargetOf(run: OpenRun, state: PipelineState): Promise<UsableState> {
  const { pipeline } = run;
  // Without a position nothing is skipped.
  const isAtStart = state.scanPosition === null && state.watermarkFingerprint === null;
  const what = isAtStart ? undefined : await misfitOf(run, state);
  if (what === undefined) return { state, startsOver: undefined };
  if (run.scope === "after_cursor" && !pipeline.create_target) {
    throw new VitrinaError("TARGET_REPLACED", `${what}; the checkpoint of ${pipeline.name} does not fit it.`);
  }
  return startOver(run, what);
}

/** Nothing of the checkpoint is used: why, in words. */
export async function startOver(run: OpenRun, what: string): Promise<UsableState> {
  const { parts, pipeline, commit, report, writer } = run;
  await writer.commits.kept?.forget();
  await commit.startOver();
  const startsOver = `${what}: everything is read again.`;
  report.log.warn({}, startsOver);
  return { state: await parts.store.state.get(pipeline.id), startsOver };
}

/** Once found, this stands until a person decides: each claim has a higher epoch, so a retry would get past it. */
export function requireNotAhead({ name, target_table }: Pipeline, { targetAhead }: PipelineState): void {
  if (!targetAhead) return;
  throw new VitrinaError("TARGET_AHEAD", `${target_table} was written later than this meta-store knows of ${name}.`);
}

/** Why the rows before the position are not in the target as this run would write them, in words. */
export async function misfitOf(
  { pipeline, scope, writer, transform }: OpenRun,
  { targetMark: mark, batchNo }: Pick<PipelineState, "targetMark" | "batchNo">,
): Promise<string | undefined> {
  const { target_table: target } = pipeline;
  // Without a mark a person has decided to go on with what is there.
  if (mark === null) return undefined;
  // What is left of a load of everything was written as it is now; only a position outlives other configurations.
  const otherwise = writtenOtherwise(mark, pipeline);
  if (otherwise !== undefined) return scope === "everything" ? undefined : otherwise;
  const loss = await findLoss(writer, mark, batchNo);
  if (loss !== undefined) return describeLoss(target, loss);
  // A query such as SELECT * returns a new column of the source although nobody changed the pipeline.
  const added = columnsSince(mark, namesOf(transform.columns));
  return added.length === 0 ? undefined : describeNewColumns(target, added);
}

async function findLoss(writer: SinkWriter, mark: TargetMark, batchNo: number): Promise<TargetLoss | undefined> {
  const { kept } = writer.commits;
  // The copy beside the data is written first, so it never falls behind by itself.
  if (kept !== undefined && kept.found.batchNo < batchNo) return "behind";
  return writer.lossSince(mark);
}

/** Before the first batch of a load, when the target is there. */
export async function markTarget(run: OpenRun): Promise<TargetMark | null> {
  const mark = await takeMark(run);
  if (mark !== null) await run.commit.noteTarget(mark);
  return mark;
}

/** The target's mark, with the columns that this run writes. */
export async function takeMark({ pipeline, writer, transform }: OpenRun): Promise<TargetMark | null> {
  const mark = await writer.takeMark();
  const writtenBy = rowsFingerprint(pipeline);
  return mark && { ...mark, target: pipeline.target_table, columns: namesOf(transform.columns), writtenBy };
}

function namesOf(columns: readonly Column[]): readonly string[] {
  return columns.map(({ name }) => name);
}

/** Before a load ends: what was written or compared so far must still be there. */
export async function requireSameTarget({ pipeline, scope, writer }: OpenRun, mark: TargetMark | null): Promise<void> {
  if (mark === null) return;
  // An incremental load may itself have deleted the last row, and may leave a target empty that it found empty.
  const filled = mark.filled === true && !writer.deletesRows ? true : undefined;
  const loss = await writer.lossSince(scope === "everything" ? mark : { ...mark, filled });
  if (loss === undefined) return;
  throw new VitrinaError("TARGET_CHANGED", `${describeLoss(pipeline.target_table, loss)} while the run wrote to it.`);
}
