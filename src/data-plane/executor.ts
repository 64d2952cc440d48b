import type { Connectors } from "../connectors/index.ts";
import type { Targets } from "../connectors/targets.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { Watermark } from "../domain/watermark.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { BatchCommit } from "../meta-store/ports/batch-commit.ts";
import type { Claim } from "../meta-store/ports/run-queue.ts";
import { faultPoint } from "../observability/fault-points.ts";
import type { RunObserver } from "../observability/runner-metrics.ts";
import { databaseError } from "../postgres/errors.ts";
import type { GuardRules } from "../sql-guard/guard.ts";
import type { TaskHost } from "../tasks/task.ts";
import { moveBatches, TooManyRejects } from "./execute-batch.ts";
import { isInParts, type Load, openLoad } from "./load.ts";
import { restorePrevious } from "./restore.ts";
import { retryRejects } from "./retry-rejects.ts";
import { readRowsWithoutCursor } from "./rows-without-cursor.ts";
import type { RunReport } from "./run-report.ts";
import { markTarget, requireNotAhead, requireSameTarget, takeMark } from "./target-loss.ts";

export interface ExecutorParts {
  readonly connectors: Connectors;
  readonly tasks: TaskHost;
  readonly targets: Targets;
  readonly guard: GuardRules;
  readonly store: Pick<MetaStore, "state" | "batchCommit" | "seesMark" | "rejects">;
}

export interface RunControl {
  /** Asked between two batches; what it answers is done before the next batch is read. */
  stopRequest(): EarlyEnd | undefined;
  /** Aborts when the lease is lost or the run is cancelled: what shall not be committed need not be computed. */
  readonly endSignal: AbortSignal;
  /** Only of the two when the run is cancelled: statements under way end, too. */
  readonly cancelSignal: AbortSignal;
}

/** Between two batches, with the position kept. */
export type EarlyEnd = "paused" | "cancelled" | "handed_back";

/** `finished_in_parts`: complete, but read at several moments. */
export type ExecutionEnd = "finished" | "finished_in_parts" | EarlyEnd;

/** Runs one claimed pipeline to its end, its pause or its error: plan → read → transform → write → checkpoint. */
export async function executePipeline(
  parts: ExecutorParts,
  claim: Claim,
  control: RunControl,
  report: RunReport,
): Promise<ExecutionEnd> {
  await faultPoint("claimed");
  const commit = parts.store.batchCommit(claim);
  if (claim.restoreId !== null) {
    await restorePrevious(parts, claim, claim.restoreId, commit, control.endSignal);
    return "finished";
  }
  requireNotAhead(claim.pipeline, await parts.store.state.get(claim.pipeline.id));
  try {
    return await executeLoad(parts, claim, commit, control, report);
  } catch (error) {
    if (error instanceof VitrinaError && error.code === "TARGET_AHEAD") await commit.noteTargetAhead();
    throw error;
  }
}

async function executeLoad(
  parts: ExecutorParts,
  claim: Claim,
  commit: BatchCommit,
  control: RunControl,
  report: RunReport,
): Promise<ExecutionEnd> {
  const { log, observer } = report;
  const load = await observer.timeStage("open", () => openLoad(parts, claim, commit, control, log));
  try {
    const { dataPath, dataPathReason, estimatedRows, resumed, notes } = load;
    const { strategy } = load.writer;
    await commit.describeRun({ dataPath, strategy, estimatedRows, resumed, notes });
    log.info(
      { data_path: dataPath, why: dataPathReason, strategy, estimated_rows: estimatedRows, resumed },
      "load opened",
    );
    for (const { code, message, hint } of load.writer.warnings ?? []) log.warn({ code, hint }, message);
    if (load.startsAnew) await load.writer.begin(load.checkpointer.fenceIn);
    await markTargetOnce(load, commit);
    await faultPoint("prepared");
    await retryRejects(parts.store, load, control, report);
    await readRowsWithoutCursor(parts.store, load, control, report);
    const stop = await observer
      .timeStage("batches", () => moveBatches(load, control, report))
      .catch((error: unknown) => giveUpRepeated(load, error));
    if (stop !== undefined) return stop;
    await faultPoint("load_read");
    await observer.timeStage("end", () => endLoad(load, commit, observer));
    await faultPoint("before_finish");
    return isInParts(load) ? "finished_in_parts" : "finished";
  } catch (error) {
    if (error instanceof TooManyRejects) await commit.keepRejects(error.rejects);
    throw error;
  } finally {
    await load.close();
  }
}

/** A full load is compared with the target as it is when it begins; the mark of an incremental one is its checkpoint's. */
async function markTargetOnce(load: Load, commit: BatchCommit): Promise<void> {
  const isKnown = load.incremental === undefined ? !load.startsAnew : load.targetMark?.identity !== undefined;
  if (!isKnown) load.targetMark = await markTarget(load.pipeline, load.writer, load.transform.columns, commit);
}

/** Everything was read and written: make it visible, or remember where the next load starts. */
async function endLoad(load: Load, commit: BatchCommit, observer: RunObserver): Promise<void> {
  const { pipeline, writer, source, incremental, progress, checkpointer } = load;
  if (incremental === undefined) {
    await requireSameTarget(pipeline, writer, load.targetMark);
    let deleted = 0;
    await writer
      .finish((transaction, result) => {
        deleted = result.rows_deleted;
        return checkpointer.endLoadIn(transaction, result);
      })
      .catch((error: unknown) => giveUpLoad(load, error));
    await faultPoint("load_committed");
    await checkpointer.loadCommitted();
    observer.rowsDeleted(deleted);
    return;
  }
  const next = await source.nextStart({
    keyType: incremental.keyType,
    previous: incremental.previous,
    candidate: incremental.candidate,
    reached: reachedBy(load, incremental.keepsId),
    safe: incremental.safePoint,
    ceiling: incremental.ceiling,
  });
  // First the copy beside the data: a position left there would later seem to be ahead of the watermark.
  await writer.kept?.forget();
  const mark = await takeMark(pipeline, writer, load.transform.columns);
  // Only now: the mark of a target that was emptied before it was made would call it rightly empty.
  await requireSameTarget(pipeline, writer, load.targetMark);
  await commit.moveWatermark(next, progress.fingerprint, mark);
  await faultPoint("watermark_moved");
}

/** The part of the position that the watermark keeps: the rest only tells rows with one cursor apart. */
function reachedBy({ pipeline, read, progress }: Load, keepsId: boolean): Watermark | null {
  const partOf = (name: string | null): string | null =>
    name === null ? null : (progress.position?.[read.orderBy.indexOf(name)] ?? null);
  const value = partOf(pipeline.incremental_key);
  return value === null ? null : { value, id: keepsId ? partOf(pipeline.incremental_id_key) : null };
}

/** Continued behind the key, the load would never meet its second row. */
async function giveUpRepeated(load: Load, error: unknown): Promise<never> {
  if (error instanceof VitrinaError && error.code === "KEY_NOT_UNIQUE_IN_SOURCE") return giveUpLoad(load, error);
  throw error;
}

/**
 * The load was read to its end and refused as a whole, by the guard or by a unique key. Continued, it would be refused
 * for ever, however the source is put right meanwhile: so the next run reads the source anew.
 */
async function giveUpLoad({ writer, checkpointer }: Load, error: unknown): Promise<never> {
  const { retry } = databaseError(error, "end the load");
  if (!mayPass(retry) && retry !== "fenced") {
    await writer
      .giveUp((transaction) => checkpointer.endLoadIn(transaction, { rows_deleted: 0 }))
      .then(() => checkpointer.loadCommitted())
      .catch(() => undefined);
  }
  throw error;
}
