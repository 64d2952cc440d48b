import type { BatchResult, FinishedLoad, TargetKey, Uncommitted, WrittenBatch } from "../connectors/sink.ts";
import type { ScanPosition } from "../domain/checkpoint.ts";
import { plural } from "../domain/counted.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { repeatedKey } from "../domain/reading-plan.ts";
import type { BatchCounters } from "../domain/run.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { BatchEffort, BatchProgress, LeaseView, RefusedRow } from "../meta-store/ports/batch-commit.ts";
import { faultPoint } from "../observability/fault-points.ts";
import type { Load } from "./run-context.ts";

/**
 * Everything a load commits is committed here: a batch, the end of a load, and what belongs to no batch, each in all
 * three ways of committing. Where there is a transaction, the fence is the last statement before its
 * commit (decision 0002); whatever fails before that is rolled back.
 */

/** A batch that the sink has written, as the engine knows it. */
export interface BatchFacts {
  /** How many rows were read for it. */
  readonly read: number;
  /** How many of them the code tasks gave back. */
  readonly transformed: number;
  readonly position: ScanPosition | null;
  effort(): BatchEffort;
  /** Earlier rejects that this batch settles. If refused again, they are replaced. */
  readonly settledRejects?: readonly number[];
  /** What the batch stands for: the target's rows of these keys are deleted where it has none. */
  readonly keys?: readonly TargetKey[] | undefined;
}

export interface CommittedBatch {
  readonly lease: LeaseView;
  readonly batchNo: number;
  readonly counters: BatchCounters;
  readonly rowsDeleted: number;
  readonly effort: BatchEffort;
}

export function commitBatch(load: Load, written: WrittenBatch, facts: BatchFacts): Promise<CommittedBatch> {
  const { commit: metaStore, writer } = load;
  const { commits } = writer;
  return orRollBack(written, async () => {
    const batch = progressOf(load, written.result, facts);
    switch (commits.way) {
      case "with-checkpoint": {
        // Rows, checkpoint and counters are one transaction. The statement that records them is also the fence.
        const lease = await metaStore.recordIn(transactionOf(written), batch);
        await faultPoint("checkpoint_recorded");
        await written.commit();
        await faultPoint("data_committed");
        return advance(load, batch, lease, facts);
      }
      case "beside": {
        // Rows and the checkpoint beside them are one transaction, fenced by its epoch. The meta-store follows.
        const { expectedBatchNo, position, fingerprint, safePoint } = batch;
        const kept = { batchNo: expectedBatchNo + 1, position, fingerprint, safePoint };
        await commits.kept.recordIn(transactionOf(written), kept);
        await faultPoint("checkpoint_recorded");
        await written.commit();
        await faultPoint("data_committed");
        return advance(load, batch, await metaStore.record(batch), facts);
      }
      case "after": {
        // The target acknowledged every row, and sending them again would change nothing; so the checkpoint follows.
        await written.commit();
        const lease = await metaStore.record(batch);
        await faultPoint("checkpoint_recorded");
        await faultPoint("data_committed");
        return advance(load, batch, lease, facts);
      }
    }
  });
}

/** The whole load becomes visible, and the next one starts from nothing. */
export function commitLoad({ commit: metaStore, writer }: Load, finished: FinishedLoad): Promise<void> {
  const { commits } = writer;
  const { rows_deleted } = finished;
  return orRollBack(finished, async () => {
    switch (commits.way) {
      case "with-checkpoint":
        await metaStore.endLoadIn(transactionOf(finished), rows_deleted);
        await finished.commit();
        await faultPoint("load_committed");
        return;
      case "beside":
        await commits.kept.forgetIn(transactionOf(finished));
        await finished.commit();
        await faultPoint("load_committed");
        await metaStore.endLoad(rows_deleted);
        return;
      case "after":
        // The switch cannot be taken back, so nobody may take the pipeline over around it.
        await metaStore.underLease(async (transaction) => {
          await finished.commit();
          await metaStore.endLoadIn(transaction, rows_deleted);
        });
        await faultPoint("load_committed");
    }
  });
}

/** The load is refused as a whole: nothing of it stays, and the next one starts from nothing. */
export function commitGivenUp({ commit: metaStore, writer }: Load, givenUp: Uncommitted): Promise<void> {
  const { commits } = writer;
  return orRollBack(givenUp, async () => {
    switch (commits.way) {
      case "with-checkpoint":
        await metaStore.endLoadIn(transactionOf(givenUp), 0);
        return givenUp.commit();
      case "beside":
        await commits.kept.forgetIn(transactionOf(givenUp));
        await givenUp.commit();
        return metaStore.endLoad(0);
      case "after":
        // In this order: the next load clears away whatever an earlier one left without a position.
        await metaStore.endLoad(0);
        return givenUp.commit();
    }
  });
}

/** What belongs to no batch: what a load begins with, and the empty range after its last row. */
export function commitFenced({ commit: metaStore, writer }: Load, change: Uncommitted): Promise<void> {
  const { commits } = writer;
  return orRollBack(change, async () => {
    switch (commits.way) {
      case "with-checkpoint":
        await metaStore.fenceIn(transactionOf(change));
        break;
      case "beside":
        await commits.kept.fenceIn(transactionOf(change));
        break;
      case "after":
        await metaStore.fence();
    }
    await change.commit();
  });
}

async function orRollBack<T>(change: Uncommitted, commit: () => Promise<T>): Promise<T> {
  try {
    return await commit();
  } catch (error) {
    await change.rollback();
    throw error;
  }
}

/** A sink that promises to commit with the checkpoint, but has no transaction, is defective. */
function transactionOf({ transaction }: Uncommitted): SqlSession {
  if (transaction !== undefined) return transaction;
  throw new VitrinaError("INTERNAL", "The checkpoint was to be committed with the data, but there is no transaction.");
}

/** How many of the rows that made a run fail are kept with it. */
const SHOWN_REJECTS = 100;

/** Nothing of the batch is committed, so its refused rows must be recorded separately. */
export class TooManyRejects extends VitrinaError {
  readonly rejects: readonly RefusedRow[];

  constructor(message: string, rejects: readonly RefusedRow[]) {
    super("TOO_MANY_REJECTS", message);
    this.rejects = rejects;
  }
}

/** What is recorded of a batch. Throws when it must not be committed. */
function progressOf(
  load: Load,
  { rejects, rows_deleted: rowsDeleted, ...counts }: BatchResult,
  { read, transformed, position, effort, settledRejects = [], keys }: BatchFacts,
): BatchProgress {
  const { batchNo, limits } = load.progress;
  if (load.read.eachOnce && counts.rows_deduplicated > 0) throw repeatedKey(load.writer.key);
  if (rejectedWith(load.progress, rejects.length, settledRejects.length) > limits.maxRejects) {
    const first = rejects.slice(0, SHOWN_REJECTS).map((reject) => describeReject(load, reject));
    const last = rejects.at(-1)?.reason;
    throw new TooManyRejects(
      `The target refused more than ${plural(limits.maxRejects, "row")}; the last because: ${last}`,
      first,
    );
  }
  return {
    position,
    fingerprint: load.fingerprint,
    expectedBatchNo: batchNo,
    safePoint: load.incremental?.safePoint ?? null,
    effort: effort(),
    rejects: rejects.map((reject) => describeReject(load, reject)),
    settledRejects,
    rowsDeleted,
    fillsTarget:
      (load.incremental !== undefined || keys !== undefined) && counts.rows_written + counts.rows_unchanged > 0,
    counters: {
      ...counts,
      rows_read: read,
      rows_rejected: rejects.length,
      rows_dropped: Math.max(0, read - transformed),
      rows_added: Math.max(0, transformed - read),
    },
  };
}

/** A row that is refused again is nothing new. But a round counts like a full load, or rejects would pile up without end. */
function rejectedWith({ rejected, rejectedInRound }: Load["progress"], more: number, again: number): number {
  return Math.max(rejected + more - again, rejectedInRound === undefined ? 0 : rejectedInRound + more);
}

function describeReject({ transform, writer }: Load, { row, code, error }: BatchResult["rejects"][number]): RefusedRow {
  const values = Object.fromEntries(transform.columns.map(({ name }, index) => [name, row[index] ?? null]));
  const key = Object.fromEntries(writer.key.map((name) => [name, values[name] ?? null]));
  return { key, row: values, code, error };
}

function advance(
  { progress }: Load,
  { position, counters, settledRejects, rowsDeleted, fillsTarget }: BatchProgress,
  lease: LeaseView,
  { effort }: BatchFacts,
): CommittedBatch {
  progress.position = position;
  progress.batchNo += 1;
  progress.rejected += Math.max(0, counters.rows_rejected - settledRejects.length);
  if (progress.rejectedInRound !== undefined) progress.rejectedInRound += counters.rows_rejected;
  progress.limits = lease;
  const mayBeEmpty = !fillsTarget && rowsDeleted > 0;
  if (progress.targetMark !== null && (fillsTarget || mayBeEmpty)) {
    progress.targetMark = { ...progress.targetMark, filled: fillsTarget };
  }
  return { lease, batchNo: progress.batchNo, counters, rowsDeleted, effort: effort() };
}
