import type { Follower } from "../connectors/follower.ts";
import type { Connectors } from "../connectors/index.ts";
import type { SinkWriter } from "../connectors/sink.ts";
import type { ReadRequest, Source, SourceRef } from "../connectors/source.ts";
import type { Targets } from "../connectors/targets.ts";
import type { ScanPosition } from "../domain/checkpoint.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { DataPath } from "../domain/reading-plan.ts";
import type { Column } from "../domain/row.ts";
import type { TargetMark } from "../domain/target-mark.ts";
import type { TaskPlan } from "../domain/task-plan.ts";
import type { Candidate, Watermark } from "../domain/watermark.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { BatchCommit, LeaseView } from "../meta-store/ports/batch-commit.ts";
import type { Claim } from "../meta-store/ports/run-queue.ts";
import type { TaskHost, Transform } from "../tasks/task.ts";
import type { KeptSources } from "./follow/kept-sources.ts";
import type { RunReport } from "./run-report.ts";

/** What a run works with, in the order it is created: parts of the runner, a claim, what it opens, a load. */

export interface EngineParts {
  readonly connectors: Connectors;
  readonly tasks: TaskHost;
  readonly targets: Targets;
  /**
   * Where Vitrina owns the source: installs what records the changes of these tables. False: the source is another's.
   */
  readonly installChanges?: ((of: SourceRef, plan: Follower["plan"]) => Promise<boolean>) | undefined;
  /** Of runs in follow mode. */
  readonly keptSources: KeptSources;
  readonly store: Pick<MetaStore, "state" | "batchCommit" | "seesMark" | "rejects" | "runs" | "reconciles" | "follow">;
}

export interface RunControl {
  /** Aborts when the runner stops: for work that another runner cannot continue, and that may stop at any point. */
  readonly stopSignal: AbortSignal;
  /** Called between two batches; its answer is acted on before the next batch is read. */
  stopRequest(): EarlyEnd | undefined;
  /** Aborts when the lease is lost or the run is cancelled: what will not be committed need not be computed. */
  readonly endSignal: AbortSignal;
  /** Aborts only when the run is cancelled: statements under way end, too. */
  readonly cancelSignal: AbortSignal;
}

/** Why a load stopped between two batches; its position is kept. */
export type EarlyEnd = "paused" | "cancelled" | "handed_back";

export interface RunContext {
  readonly parts: EngineParts;
  readonly claim: Claim;
  readonly pipeline: Pipeline;
  /** What the holder of the lease may change in the meta-store. */
  readonly commit: BatchCommit;
  readonly control: RunControl;
  readonly report: RunReport;
}

/** A run whose source and tasks are open. */
export interface ReadingRun extends RunContext {
  readonly plan: TaskPlan;
  readonly source: Source;
  /** Of the query. */
  readonly columns: readonly Column[];
  /** The code tasks as one; its columns are the target's. */
  readonly transform: Transform;
}

/** Which rows a load moves: all of the query, those after its cursor, or those of single keys. */
export type LoadScope = "everything" | "after_cursor" | "keys";

/** A run whose target is open, too. */
export interface OpenRun extends ReadingRun {
  readonly scope: LoadScope;
  /** Which query, key and target a position of this run belongs to. */
  readonly fingerprint: string;
  readonly writer: SinkWriter;
}

/** Everything a run needs to move its batches, opened and checked before the first row is read. */
export interface Load extends OpenRun {
  readonly dataPath: DataPath;
  /** Why this path was chosen, in words. */
  readonly dataPathReason: string;
  /** How many rows the planner of the source expects this run to read. */
  readonly estimatedRows: number | null;
  readonly read: Omit<ReadRequest, "after">;
  /** False when an unfinished full load is continued. */
  readonly startsAnew: boolean;
  /** An unfinished load is continued. */
  readonly resumed: boolean;
  /** What a person should know about this run. */
  readonly notes: readonly string[];
  readonly incremental: IncrementalLoad | undefined;
  readonly progress: LoadProgress;
  close(): Promise<void>;
}

export interface IncrementalLoad {
  readonly keyType: string;
  readonly previous: Watermark;
  readonly candidate: Candidate | null;
  readonly safePoint: string;
  readonly ceiling: string | null;
  /** False: the watermark is the value alone. */
  readonly keepsId: boolean;
  /** True: rows without the key are not allowed, and only reading shows whether there are any. */
  readonly mayMeetNulls: boolean;
  readonly notes: readonly string[];
}

/** Everything about a load that changes while it runs. */
interface LoadProgress {
  position: ScanPosition | null;
  batchNo: number;
  /** In this run, without those that an earlier one had refused as well. */
  rejected: number;
  /** With those, since the round began that the load follows; undefined where there are no rounds. */
  rejectedInRound: number | undefined;
  /** People may change these at any time; each commit returns the current values. */
  limits: Pick<LeaseView, "batchSize" | "maxRejects" | "maxDeletePercent">;
  /** The target's mark from when the checkpoint of this load began; null while it is not known. */
  targetMark: TargetMark | null;
}
