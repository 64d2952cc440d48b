import type { KeptCheckpoint } from "../connectors/sink.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { BatchCommit, BatchProgress, LeaseView } from "../meta-store/meta-store.ts";

/**
 * Keeps the checkpoint in step with the data. Where target and meta-store are one database, both commit in one
 * transaction. Where they are not, a checkpoint beside the data does, and the meta-store follows.
 */
export interface Checkpointer {
  fenceIn(transaction: SqlSession): Promise<void>;
  /** Inside the transaction that writes the batch. */
  recordIn(transaction: SqlSession, progress: BatchProgress): Promise<void>;
  /** After that transaction was committed; brings back what was asked for meanwhile. */
  committed(): Promise<LeaseView>;
  /** Inside the transaction that makes a whole load visible. */
  endLoadIn(transaction: SqlSession, rowsDeleted: number): Promise<void>;
  loadCommitted(): Promise<void>;
}

export function sharedCheckpointer(commit: BatchCommit): Checkpointer {
  let lease: LeaseView | undefined;
  return {
    fenceIn: commit.fenceIn,
    async recordIn(transaction, progress) {
      lease = await commit.recordIn(transaction, progress);
    },
    async committed() {
      if (lease === undefined) throw new VitrinaError("INTERNAL", "A batch was committed without its checkpoint.");
      return lease;
    },
    endLoadIn: commit.endLoadIn,
    loadCommitted: async () => undefined,
  };
}

export function besideCheckpointer(kept: KeptCheckpoint, commit: BatchCommit): Checkpointer {
  let written: BatchProgress | undefined;
  let deleted = 0;
  return {
    fenceIn: kept.fenceIn,
    async recordIn(transaction, progress) {
      const { expectedBatchNo, position, fingerprint, safePoint } = progress;
      await kept.recordIn(transaction, { batchNo: expectedBatchNo + 1, position, fingerprint, safePoint });
      written = progress;
    },
    async committed() {
      if (written === undefined) throw new VitrinaError("INTERNAL", "A batch was committed without its checkpoint.");
      return commit.record(written);
    },
    async endLoadIn(transaction, rowsDeleted) {
      await kept.forgetIn(transaction);
      deleted = rowsDeleted;
    },
    loadCommitted: () => commit.endLoad(deleted),
  };
}
