import type { SinkWriter } from "../connectors/sink.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import { describeLoss, type TargetLoss, type TargetMark } from "../domain/target-mark.ts";
import type { BatchCommit, MetaStore, PipelineState } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

export interface UsableState {
  readonly state: PipelineState;
  /** Why nothing of the checkpoint is used, for people. */
  readonly startsOver: string | undefined;
}

/**
 * The checkpoint as this run may use it. Where the target no longer holds what was written up to it, an incremental
 * load would bring only what is new and call that a success: so everything is read again, or a person decides.
 */
export async function requireTargetOf(
  store: Pick<MetaStore, "getState">,
  pipeline: Pipeline,
  writer: SinkWriter,
  state: PipelineState,
  commit: BatchCommit,
  log: Log,
): Promise<UsableState> {
  const loss = await findLoss(pipeline, writer, state);
  if (loss === undefined) return { state, startsOver: undefined };
  const what = describeLoss(pipeline.target_table, loss);
  if (pipeline.mode === "incremental" && !pipeline.create_target) {
    throw new VitrinaError("TARGET_REPLACED", `${what}; the checkpoint of ${pipeline.name} does not fit it.`);
  }
  await writer.kept?.forget();
  await commit.startOver();
  const startsOver = `${what}: everything is read again.`;
  log.warn({ reason: loss }, startsOver);
  return { state: await store.getState(pipeline.id), startsOver };
}

/** Found once, it stays so until a person decides: each claim has a higher epoch, so trying again would get past it. */
export function requireNotAhead({ name, target_table }: Pipeline, { targetAhead }: PipelineState): void {
  if (!targetAhead) return;
  throw new VitrinaError("TARGET_AHEAD", `${target_table} was written later than this meta-store knows of ${name}.`);
}

async function findLoss(
  { target_table }: Pipeline,
  writer: SinkWriter,
  { targetMark: mark, scanPosition, watermarkFingerprint, batchNo }: PipelineState,
): Promise<TargetLoss | undefined> {
  // Without a position nothing is left out; without a mark a person has decided to go on with what is there.
  if (mark === null || (scanPosition === null && watermarkFingerprint === null)) return undefined;
  if (mark.target !== undefined && mark.target !== target_table) return undefined;
  // What is beside the data is written first, so it can never be behind by itself.
  if (writer.kept !== undefined && writer.kept.found.batchNo < batchNo) return "behind";
  return writer.lossSince(mark);
}

/** Before the first batch of a load, when the target is there. */
export async function markTarget(
  pipeline: Pipeline,
  writer: SinkWriter,
  commit: BatchCommit,
): Promise<TargetMark | null> {
  const mark = await writer.takeMark();
  if (mark === null) return null;
  const named = { ...mark, target: pipeline.target_table };
  await commit.noteTarget(named);
  return named;
}

/** Before a load ends: what was written or compared so far must still be there. */
export async function requireSameTarget(
  pipeline: Pipeline,
  writer: SinkWriter,
  mark: TargetMark | null,
): Promise<void> {
  if (mark === null) return;
  // An incremental load may have deleted the last row itself.
  const loss = await writer.lossSince(pipeline.mode === "full" ? mark : { ...mark, filled: undefined });
  if (loss === undefined) return;
  throw new VitrinaError("TARGET_CHANGED", `${describeLoss(pipeline.target_table, loss)} while the run wrote to it.`);
}
