import type { ScanPosition } from "../../domain/checkpoint.ts";
import type { FollowPosition, SweepPosition } from "../../domain/follow.ts";
import type { PipelineStatus } from "../../domain/pipeline-status.ts";
import type { BatchCounters } from "../../domain/run.ts";
import type { SourceMark } from "../../domain/source-mark.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import type { TargetMark } from "../../domain/target-mark.ts";
import type { NextStart } from "../../domain/watermark.ts";

export interface BatchCommit {
  /**
   * Inside the transaction that wrote the batch: locks the lease (throws LEASE_LOST when it is gone), moves the
   * checkpoint by exactly one batch, and adds the counters to the run.
   */
  recordIn(transaction: SqlSession, progress: BatchProgress): Promise<LeaseView>;
  /** The same in a transaction of its own, after a target elsewhere has acknowledged the batch. */
  record(progress: BatchProgress): Promise<LeaseView>;
  /** A target elsewhere was one batch ahead when its runner was lost: the meta-store follows it. */
  catchUp(position: CaughtUpPosition): Promise<void>;
  /** Locks the lease without recording anything: for changes that belong to no batch. */
  fenceIn(transaction: SqlSession): Promise<void>;
  /** Throws LEASE_LOST when the lease is gone. */
  fence(): Promise<void>;
  /** Runs a change elsewhere in a transaction that has locked the lease, so that nobody can take the pipeline over. */
  underLease(change: (transaction: SqlSession) => Promise<void>): Promise<void>;
  /** Inside the transaction that made a whole load visible: the load is over, the next one starts from nothing. */
  endLoadIn(transaction: SqlSession, rowsDeleted: number): Promise<void>;
  /** The same in a transaction of its own. */
  endLoad(rowsDeleted: number): Promise<void>;
  /** The run fails because of these rows: they are kept to be looked at, until a later run gets past them. */
  keepRejects(rejects: readonly RefusedRow[]): Promise<void>;
  /** What the checkpoint belongs to from now on. */
  noteTarget(mark: TargetMark): Promise<void>;
  /** Where the position of the load was, or is going to be, reached. */
  noteSource(mark: SourceMark): Promise<void>;
  /** From now on every run fails with TARGET_AHEAD, until a person changes the state. */
  noteTargetAhead(): Promise<void>;
  /** Nothing of the checkpoint is of use any more. */
  startOver(): Promise<void>;
  /** An incremental load is over: the next one starts at the watermark, if the target is still this one. */
  moveWatermark(next: NextStart, fingerprint: string, mark: TargetMark | null): Promise<void>;
  /** Everything is going to be compared: what that reads is not older than this position. */
  noteCompareBegins(position: FollowPosition, reason: string, tables: readonly string[]): Promise<void>;
  /** The target has every change up to the position. */
  moveFollowPosition(move: FollowMove): Promise<void>;
  /**
   * The sweep that was due has ended. `repaired`: rows that differed although every change had been followed. `next`: where
   * the next one begins; null where everything was compared.
   */
  noteSwept(repaired: number, next: SweepPosition | null): Promise<void>;
  /** Says how the run works, for people. */
  describeRun(facts: RunFacts): Promise<void>;
}

export interface BatchProgress {
  /** Null where reading cannot be continued, only repeated. */
  readonly position: ScanPosition | null;
  readonly fingerprint: string;
  readonly counters: BatchCounters;
  /** From the target, because their row is gone. No row that was read becomes one of these. */
  readonly rowsDeleted: number;
  readonly effort: BatchEffort;
  readonly rejects: readonly RefusedRow[];
  /** Earlier rejects that are settled by this batch: their rows are written, gone, or refused again. */
  readonly settledRejects: readonly number[];
  /** The horizon of an incremental load. */
  readonly safePoint: string | null;
  /** The batch number this commit builds on. */
  readonly expectedBatchNo: number;
  /** The target holds rows of it at once. If not, and rows were deleted, it may rightly be empty now. */
  readonly fillsTarget: boolean;
}

export interface BatchEffort {
  readonly bytes: number;
  readonly read_ms: number;
  readonly transform_ms: number;
  readonly write_ms: number;
}

/** A row that the target refused, kept so that somebody can look at it. */
export interface RefusedRow {
  readonly key: Readonly<Record<string, string | null>>;
  readonly row: Readonly<Record<string, string | null>>;
  readonly code: string;
  readonly error: string;
}

/** What the fence read while it held the lease: requests reach the runner with each commit. */
export interface LeaseView {
  readonly status: PipelineStatus;
  readonly batchSize: number;
  readonly maxRejects: number;
  readonly maxDeletePercent: number;
}

interface FollowMove {
  readonly position: FollowPosition;
  /** Of the configuration. */
  readonly fingerprint: string;
  /** Whose changes are followed, as schema.table. */
  readonly tables: readonly string[];
  /** Of the target as it is now; null where the next run takes it. */
  readonly mark: TargetMark | null;
  /** True: by comparing everything, which has ended with this, and settles every reject from before. */
  readonly comparedEverything: boolean;
}

interface CaughtUpPosition {
  readonly batchNo: number;
  readonly position: ScanPosition | null;
  readonly fingerprint: string | null;
  readonly safePoint: string | null;
}

interface RunFacts {
  /** Null where no rows travel. */
  readonly dataPath: string | null;
  readonly strategy: string;
  /** Null where nobody can tell. */
  readonly estimatedRows: number | null;
  /** An unfinished load is continued. */
  readonly resumed: boolean;
  /** What a person should know about it. */
  readonly notes?: readonly string[];
}
