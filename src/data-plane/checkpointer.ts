import type { KeptCheckpoint, LoadResult, OpenTransaction } from "../connectors/sink.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { BatchCommit, BatchProgress, LeaseView } from "../meta-store/ports/batch-commit.ts";

/**
 * Keeps the checkpoint in step with the data. Where target and meta-store are one database, both commit in one
 * transaction. Where they are not, a checkpoint beside the data does, and the meta-store follows. Where the target has
 * no transactions, the meta-store follows what the target has acknowledged.
 */
export interface Checkpointer {
  fenceIn(transaction: OpenTransaction): Promise<void>;
  /** Inside the transaction that writes the batch, or after the target has acknowledged it. */
  recordIn(transaction: OpenTransaction, progress: BatchProgress): Promise<void>;
  /** After that transaction was committed; brings back what was asked for meanwhile. */
  committed(): Promise<LeaseView>;
  /** Inside the transaction that makes a whole load visible, or around what makes it visible. */
  endLoadIn(transaction: OpenTransaction, result: LoadResult): Promise<void>;
  loadCommitted(): Promise<void>;
}

/** A sink that promises to commit together with its checkpoint, and then has no transaction, has a defect. */
function required(transaction: OpenTransaction): SqlSession {
  if (transaction !== undefined) return transaction;
  throw new VitrinaError("INTERNAL", "The checkpoint was to be committed with the data, but there is no transaction.");
}

export function sharedCheckpointer(commit: BatchCommit): Checkpointer {
  let lease: LeaseView | undefined;
  return {
    fenceIn: (transaction) => commit.fenceIn(required(transaction)),
    async recordIn(transaction, progress) {
      lease = await commit.recordIn(required(transaction), progress);
    },
    async committed() {
      if (lease === undefined) throw new VitrinaError("INTERNAL", "A batch was committed without its checkpoint.");
      return lease;
    },
    endLoadIn: (transaction, { rows_deleted }) => commit.endLoadIn(required(transaction), rows_deleted),
    loadCommitted: async () => undefined,
  };
}

export function followingCheckpointer(commit: BatchCommit): Checkpointer {
  let lease: LeaseView | undefined;
  return {
    fenceIn: () => commit.fence(),
    async recordIn(_transaction, progress) {
      lease = await commit.record(progress);
    },
    async committed() {
      if (lease === undefined) throw new VitrinaError("INTERNAL", "A batch was acknowledged without its checkpoint.");
      return lease;
    },
    endLoadIn: (_transaction, { rows_deleted, makeVisible }) => commit.endLoad(rows_deleted, makeVisible),
    loadCommitted: async () => undefined,
  };
}

export function besideCheckpointer(kept: KeptCheckpoint, commit: BatchCommit): Checkpointer {
  let written: BatchProgress | undefined;
  let deleted = 0;
  return {
    fenceIn: (transaction) => kept.fenceIn(required(transaction)),
    async recordIn(transaction, progress) {
      const { expectedBatchNo, position, fingerprint, safePoint } = progress;
      await kept.recordIn(required(transaction), { batchNo: expectedBatchNo + 1, position, fingerprint, safePoint });
      written = progress;
    },
    async committed() {
      if (written === undefined) throw new VitrinaError("INTERNAL", "A batch was committed without its checkpoint.");
      return commit.record(written);
    },
    async endLoadIn(transaction, { rows_deleted }) {
      await kept.forgetIn(required(transaction));
      deleted = rows_deleted;
    },
    loadCommitted: () => commit.endLoad(deleted),
  };
}
