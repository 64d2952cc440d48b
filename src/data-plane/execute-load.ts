import { VitrinaError } from "../domain/error-catalogue.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { Watermark } from "../domain/watermark.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { databaseError } from "../postgres/errors.ts";
import { commitFenced, commitGivenUp, commitLoad, TooManyRejects } from "./commit.ts";
import { moveBatches } from "./execute-batch.ts";
import { retryRejects } from "./retry-rejects.ts";
import { readRowsWithoutCursor } from "./rows-without-cursor.ts";
import type { EarlyEnd, IncrementalLoad, Load } from "./run-context.ts";
import { markTarget, requireSameTarget, takeMark } from "./target-loss.ts";

/** Carries out a load that is open: read → transform → write → commit. Returns why it stopped early, if it did. */
export async function executeLoad(load: Load): Promise<EarlyEnd | undefined> {
  const { commit } = load;
  const { observer } = load.report;
  try {
    await describeLoad(load);
    if (load.startsAnew) await beginLoad(load);
    await markTargetOnce(load);
    await faultPoint("prepared");
    await retryRejects(load);
    await readRowsWithoutCursor(load);
    const stop = await observer
      .timeStage("batches", () => moveBatches(load))
      .catch((error: unknown) => giveUpRepeated(load, error));
    if (stop !== undefined) return stop;
    await faultPoint("load_read");
    await observer.timeStage("end", () => endLoad(load));
    return undefined;
  } catch (error) {
    if (error instanceof TooManyRejects) await commit.keepRejects(error.rejects);
    throw error;
  }
}

async function describeLoad(load: Load): Promise<void> {
  const { dataPath, dataPathReason, estimatedRows, resumed, notes, commit, report } = load;
  const { strategy } = load.writer;
  await commit.describeRun({ dataPath, strategy, estimatedRows, resumed, notes });
  report.log.info(
    { data_path: dataPath, why: dataPathReason, strategy, estimated_rows: estimatedRows, resumed },
    "load opened",
  );
  for (const { code, message, hint } of load.writer.warnings ?? []) report.log.warn({ code, hint }, message);
}

export async function beginLoad(load: Load): Promise<void> {
  const prepared = await load.writer.begin();
  if (prepared !== undefined) await commitFenced(load, prepared);
}

/** A full load is compared with the target as it is when it begins; the mark of an incremental one is its checkpoint's. */
export async function markTargetOnce(load: Load): Promise<void> {
  const { progress, scope, startsAnew } = load;
  const isKnown = scope === "everything" ? !startsAnew : progress.targetMark?.identity !== undefined;
  if (!isKnown) progress.targetMark = await markTarget(load);
}

/** Everything was read and written: make it visible, or record where the next load starts. */
function endLoad(load: Load): Promise<void> {
  return load.incremental === undefined ? endFullLoad(load) : endIncrementalLoad(load, load.incremental);
}

async function endFullLoad(load: Load): Promise<void> {
  const { pipeline, writer, progress, report } = load;
  await requireSameTarget(load, progress.targetMark);
  const guard = { allowEmpty: pipeline.allow_empty, maxDeletePercent: progress.limits.maxDeletePercent };
  let isVisible = false;
  try {
    const finished = await writer.finish(guard);
    const commit = async (): Promise<void> => {
      await finished.commit();
      isVisible = true;
    };
    await commitLoad(load, { ...finished, commit });
    report.observer.rowsDeleted(finished.rows_deleted);
  } catch (error) {
    // What readers already see is not given up, even if the meta-store does not know of it yet.
    if (isVisible) throw error;
    await giveUpLoad(load, error);
  }
}

async function endIncrementalLoad(load: Load, incremental: IncrementalLoad): Promise<void> {
  const { writer, source, progress, commit, fingerprint } = load;
  const next = await source.nextStart({
    keyType: incremental.keyType,
    previous: incremental.previous,
    candidate: incremental.candidate,
    reached: reachedBy(load, incremental.keepsId),
    safe: incremental.safePoint,
    ceiling: incremental.ceiling,
  });
  // First the copy beside the data: a position left there would later seem to be ahead of the watermark.
  await writer.commits.kept?.forget();
  const mark = await takeMark(load);
  // Checked after the mark is taken: a target emptied in between would be recorded as rightly empty.
  await requireSameTarget(load, progress.targetMark);
  await commit.moveWatermark(next, fingerprint, mark);
  await faultPoint("watermark_moved");
}

/** The part of the position that the watermark keeps: the rest only tells rows with the same cursor apart. */
function reachedBy({ pipeline, read, progress }: Load, keepsId: boolean): Watermark | null {
  const partOf = (name: string | null): string | null =>
    name === null ? null : (progress.position?.[read.orderBy.indexOf(name)] ?? null);
  const value = partOf(pipeline.incremental_key);
  return value === null ? null : { value, id: keepsId ? partOf(pipeline.incremental_id_key) : null };
}

/** Continued after the key, the load would never reach its second row. */
async function giveUpRepeated(load: Load, error: unknown): Promise<never> {
  if (error instanceof VitrinaError && error.code === "KEY_NOT_UNIQUE_IN_SOURCE") return giveUpLoad(load, error);
  throw error;
}

/**
 * The load was read to its end and refused as a whole, by the guard or by a unique key. Continued, it would be refused
 * forever, even after the source is fixed: so the next run reads everything from the start.
 */
async function giveUpLoad(load: Load, error: unknown): Promise<never> {
  const { retry } = databaseError(error, "end the load");
  if (!mayPass(retry) && retry !== "fenced") {
    await load.writer
      .giveUp()
      .then((givenUp) => commitGivenUp(load, givenUp))
      .catch(() => undefined);
  }
  throw error;
}
