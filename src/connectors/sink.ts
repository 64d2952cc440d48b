import type { ScanPosition } from "../domain/checkpoint.ts";
import type { VitrinaError } from "../domain/error-catalogue.ts";
import type { Differences, SourceSide, TargetSide } from "../domain/reconcile.ts";
import type { Column, Row } from "../domain/row.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { Target } from "../domain/target.ts";
import type { TargetLoss, TargetMark } from "../domain/target-mark.ts";
import type { RowBatch } from "./row-batch.ts";
import type { ReadRequest } from "./source.ts";

/**
 * Where rows go.
 *
 * Contract. `open` checks everything that can be known before a row is read, and changes nothing but what the request
 * allows. Writing the same rows twice has the same effect as writing them once. A batch is durable when its `commit`
 * resolves; before that nothing of it is visible, or writing it again gives the same result.
 *
 * A load of kind `upsert` shows each batch at once. One of kind `replace` shows nothing before `finish`, and then
 * everything: afterwards the target holds exactly the rows that were written.
 *
 * Once a sink is opened under a later claim, nothing of an earlier one gets through: what a runner without its lease
 * still sends is refused, or loses to what the later claim wrote.
 */
export interface Sink<T extends Target = Target, Options = unknown> {
  open(request: SinkRequest<T, Options>): Promise<SinkWriter>;
  /** For reconcile: compares rows with what the target holds at this moment. Changes nothing. */
  openComparison(request: ComparisonRequest<T, Options>): Promise<Comparison>;
  /**
   * Removes what a pipeline left at a target that it no longer has: unfinished loads at once, what is kept for
   * restoring once its time is up. What people read stays. Returns when to check again; null when nothing is left.
   */
  clearAway(request: ClearAwayRequest<T, Options>): Promise<Date | null>;
  /** Brings back the target as it was before the last full load. Undefined for sinks that do not keep it. */
  restorePrevious?(request: RestoreRequest<T>): Promise<void>;
  /** Gives up whatever is kept between runs. */
  close?(): Promise<void>;
}

interface ClearAwayRequest<T extends Target, Options> {
  readonly target: T;
  readonly pipelineId: string;
  readonly options: Options;
  /** Another pipeline has this target by now, and looks after what is kept for restoring. */
  readonly isShared: boolean;
}

export interface RestoreRequest<T extends Target = Target> {
  readonly target: T;
  /** Identifies the request: one that was already carried out is not carried out again. */
  readonly restoreId: string;
  readonly lost: AbortSignal;
  /** Runs the change while no other runner can take the pipeline over. */
  underLease(change: () => Promise<void>): Promise<void>;
}

export interface SinkRequest<T extends Target = Target, Options = unknown> {
  readonly target: T;
  readonly columns: readonly Column[];
  /** Empty: the target's own key. */
  readonly key: readonly string[];
  readonly createTarget: boolean;
  readonly addColumns: boolean;
  readonly load: LoadRequest;
  readonly options: Options;
  readonly claim: SinkClaim;
  /** True when the mark is in the meta-store's database, so that data and checkpoint can commit together. */
  isMetaStore(mark: string): Promise<boolean>;
  /** Aborts when the lease is lost or the run is cancelled: then waiting is pointless. */
  readonly lost: AbortSignal;
  /** Aborts when the run is cancelled: then statements under way end, too. A lost lease is left to the fence. */
  readonly cancelled: AbortSignal;
  /** Throws LEASE_LOST when another runner holds the pipeline. */
  requireLease(): Promise<void>;
}

/** The claim under which rows are written: the later claim wins. */
interface SinkClaim {
  readonly pipelineId: string;
  readonly runId: string;
  readonly epoch: number;
  /** The last claim before a person changed the state: no position of it, or of an earlier one, is of use. */
  readonly decidedEpoch: number;
  /** Batches committed before this claim, over all runs of the pipeline. */
  readonly batchNo: number;
}

export interface KeptPosition {
  readonly batchNo: number;
  readonly position: ScanPosition | null;
  readonly fingerprint: string | null;
  readonly safePoint: string | null;
}

/** A checkpoint beside the data. Opening it fences off every earlier claim. */
export interface KeptCheckpoint {
  /** What earlier claims left: without a position, where a person changed the state since. */
  readonly found: KeptPosition;
  fenceIn(transaction: SqlSession): Promise<void>;
  recordIn(transaction: SqlSession, position: KeptPosition): Promise<void>;
  /** The load is over; its position no longer means anything. */
  forgetIn(transaction: SqlSession): Promise<void>;
  forget(): Promise<void>;
}

type LoadRequest =
  | {
      readonly kind: "upsert";
      /** Batches come with keys, and rows of the target whose row is gone are deleted: see `SinkWriter.write`. */
      readonly deletes?: boolean;
    }
  | {
      readonly kind: "replace";
      /** Names what an unfinished load leaves behind, so that it can be continued. */
      readonly loadId: string;
      /** True when rows arrive in the order of the key, so that each batch covers a range of keys of its own. */
      readonly inKeyOrder: boolean;
      /** Between such loads there are those that delete by keys. */
      readonly deletes?: boolean;
    };

export interface DeletionGuard {
  readonly allowEmpty: boolean;
  readonly maxDeletePercent: number;
}

export interface RejectedRow {
  readonly row: Row;
  readonly code: string;
  /** May quote values of the row: only for those who may see it. */
  readonly error: string;
  /** For everybody. */
  readonly reason: string;
}

export interface BatchResult {
  readonly rows_written: number;
  readonly rows_unchanged: number;
  readonly rows_deduplicated: number;
  /** Rows of the target whose key came without a row. */
  readonly rows_deleted: number;
  readonly rejects: readonly RejectedRow[];
}

/** The values of a key as texts, in the order of the writer's `key`. None of them is null. */
export type TargetKey = readonly string[];

/** The keys a batch covers: after `after`, up to `upTo`; null means unbounded, and up to an empty position there is none. */
export interface KeyRange {
  readonly after: ScanPosition | null;
  readonly upTo: ScanPosition | null;
}

export interface BatchPlace extends KeyRange {
  /** Grows with every batch of the pipeline; a repeated batch keeps its number. */
  readonly batchNo: number;
}

/**
 * A change that is made, but not committed. The caller must call `commit` or `rollback`.
 *
 * If a sink has no transactions, the rows of a batch are already in the target; any other change is made by `commit`,
 * in one step, while no other runner can take the pipeline over.
 */
export interface Uncommitted {
  /** The checkpoint is committed with it. */
  readonly transaction: SqlSession | undefined;
  /** When it throws, the change is rolled back, or may be made again with the same result. */
  commit(): Promise<void>;
  /** Never throws. Does nothing after `commit`. */
  rollback(): Promise<void>;
}

export interface WrittenBatch extends Uncommitted {
  readonly result: BatchResult;
}

export interface PulledBatch extends WrittenBatch {
  readonly count: number;
  /** The ordering columns of the last row. */
  readonly position: ScanPosition;
}

export interface FinishedLoad extends Uncommitted {
  readonly rows_deleted: number;
}

/** How the checkpoint keeps in step with the data; `src/data-plane/commit.ts` acts on it. */
export type WayOfCommitting =
  /** The target is in the meta-store's database: one transaction commits both. */
  | { readonly way: "with-checkpoint"; readonly kept?: undefined }
  /** A checkpoint beside the data commits with it, and the meta-store follows. */
  | { readonly way: "beside"; readonly kept: KeptCheckpoint }
  /** The target has no transactions: the meta-store follows what it has acknowledged. */
  | { readonly way: "after"; readonly kept?: undefined };

export interface SinkWriter {
  readonly key: readonly string[];
  /** How rows become visible, in words. */
  readonly strategy: string;
  /** True when an unfinished load of this kind is there, so that it can be continued. */
  readonly resumed: boolean;
  /** What a person should know about the target; the run goes on. */
  readonly warnings?: readonly VitrinaError[];
  /** The same, for what belongs into the notes of the run. */
  readonly notes?: readonly string[];
  readonly commits: WayOfCommitting;
  /** A mark of the target as it is now; null if there is no target yet, or if the load replaces it as a whole. */
  takeMark(): Promise<TargetMark | null>;
  /** Whether the target has lost what it held when the mark was taken. The loss of only a part goes unnoticed. */
  lossSince(mark: TargetMark): Promise<TargetLoss | undefined>;
  /** True when a batch may delete rows, even the last one in the target. */
  readonly deletesRows: boolean;
  /** A mark in the target's database while the writer is open, where other sessions can look for it. */
  readonly databaseMark: string | undefined;
  /** Before the first batch of a load that starts from nothing. Undefined when nothing has to be prepared. */
  begin(): Promise<Uncommitted | undefined>;
  /**
   * False for `setRefusedAside`: a row that the target refuses may end the write, or its commit, with an error of class
   * `row`. True: such rows are set aside one by one, which costs the target more.
   *
   * `keys` only for an upsert load that `deletes`: the batch has all the rows that the source has for them. What the
   * target has for one of them, and no row of the batch accounts for, is deleted with the batch. A refused row accounts
   * for its key: what the target had for it stays. Keys are the same when the target takes them for the same; a text that
   * its key cannot hold is the key of no row. They may come more than once, and in any number.
   */
  write(
    batch: RowBatch,
    place: BatchPlace,
    setRefusedAside: boolean,
    keys?: readonly TargetKey[],
  ): Promise<WrittenBatch>;
  /** How many rows the target has, after `begin`; counted no further than `limit`. */
  countUpTo(limit: number): Promise<number>;
  /** For how many of these keys, each different from the others, the target has a row. */
  countKeys(keys: readonly TargetKey[]): Promise<number>;
  /** After the last batch. Throws when the guard forbids what would be deleted. */
  finish(guard: DeletionGuard): Promise<FinishedLoad>;
  /** The load was refused as a whole: what exists of it is removed, so that the next one starts from nothing. */
  giveUp(): Promise<Uncommitted>;
  /**
   * Only where source and target can be one database: reads and writes a batch without it leaving the server. Undefined
   * when nothing is left. A row that the target refuses ends it with an error of class `row`.
   */
  readonly pull?: ((request: ReadRequest, limit: number) => Promise<PulledBatch | undefined>) | undefined;
  /** The snapshot in which every batch is pulled; another session of that database can read in it, too. */
  readonly snapshot?: (() => Promise<string>) | undefined;
  /** Instead of `close`, when nothing went wrong and nothing is under way: what it holds may serve the next run. */
  rest?(): Promise<void>;
  close(): Promise<void>;
}

export interface ComparisonRequest<T extends Target = Target, Options = unknown> {
  readonly target: T;
  /** Of the rows that will be added. */
  readonly columns: readonly Column[];
  /** Empty: the target's own key. */
  readonly key: readonly string[];
  /** A column whose least and greatest values are also reported. */
  readonly incrementalKey: string | null;
  readonly options: Options;
  /**
   * False: a row that the target's types refuse ends the comparison with an error of class `row`. True: such rows are
   * set aside one by one, which costs the target more.
   */
  readonly setRefusedAside: boolean;
  /** Compare no more than about one of so many parts of the keys after this position. */
  readonly part?: ComparedPart | undefined;
}

interface ComparedPart {
  readonly after: ScanPosition | null;
  /** 1: to the end. */
  readonly parts: number;
}

/**
 * Rows of the source against the target.
 *
 * Contract. The target is compared as it stood when the comparison was opened (in a snapshot, or for a search index a
 * point in time). The source is read afterwards; this order keeps rows that change meanwhile from being reported as
 * differences. Rows come in any order; if several have the same key, the last counts. A row is different exactly when
 * a load would write it: what a load considers unchanged is equal here, too, so each sink compares in its own form
 * (stored values of a table, documents of an index), and names the columns that it compares. Every difference is
 * counted, and the first of each kind are listed. Memory does not grow with the rows, except by a few bytes per row
 * where there is no other way to find extra ones.
 */
export interface Comparison {
  readonly key: readonly string[];
  readonly columns: readonly string[];
  /** What of the target is compared, if it is not the whole: only rows of the source with these keys are to be added. */
  readonly range?: KeyRange | undefined;
  /** `pending`: the next run reads these rows, so a difference in them is counted separately. */
  add(batch: RowBatch, standing: "settled" | "pending"): Promise<void>;
  /** After the last row; lists up to `limit` keys of each kind. */
  finish(limit: number): Promise<ComparisonResult>;
  close(): Promise<void>;
}

export interface ComparisonResult extends Differences {
  readonly source: SourceSide;
  readonly target: TargetSide;
}
