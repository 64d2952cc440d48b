import type { FollowPosition, SweepPosition } from "../../domain/follow.ts";
import type { PipelineId } from "../../domain/pipeline.ts";

/** How far follow pipelines have come. Runs move it by a batch commit. */
export interface FollowStore {
  get(id: PipelineId): Promise<FollowState>;
  /** Those that are enabled and have a position. */
  watched(): Promise<FollowingPipeline[]>;
  /**
   * Those that may start and need no question to the source: they have no position, or it belongs to another
   * configuration. Whoever cancelled the run that was to change this, or restored an older target, is not overruled.
   */
  outdated(): Promise<Pick<FollowingPipeline, "id" | "name">[]>;
  /** Where every pipeline stands that follows this source, also those that are disabled, paused or at their first run. */
  positionsIn(source: Pick<FollowingPipeline, "source_type" | "source_connection">): Promise<PositionOfPipeline[]>;
  /**
   * Requests a run of each of these that is idle, failed by trouble that may pass or because its source does not record its
   * changes or cannot be read, or has got another configuration since it failed. Others are left alone: they run already, or a person must look. Returns those that were requested.
   */
  requestOnChange(ids: readonly PipelineId[]): Promise<PipelineId[]>;
}

export interface FollowState {
  /** Null: the next run compares everything. */
  readonly position: FollowPosition | null;
  /** Of the configuration that the position belongs to. */
  readonly fingerprint: string | null;
  /** Where a comparison of everything began that has not ended yet. */
  readonly comparePosition: FollowPosition | null;
  /** Why everything was compared last, or is being compared. */
  readonly compareReason: string | null;
  /** Whose changes are followed, as schema.table. */
  readonly tables: readonly string[];
  readonly lastCompareAt: Date | null;
  readonly lastRoundAt: Date | null;
  readonly lastSweepAt: Date | null;
  readonly nextSweepAt: Date | null;
  /** A sweep is due, and has not ended yet. */
  readonly sweepWanted: boolean;
  /** Null: at the beginning. */
  readonly sweepNext: SweepPosition | null;
  /** Rows that sweeps had to repair, over all and in the last one. */
  readonly repaired: number;
  readonly lastRepaired: number;
  /** Everything was compared several times, one after the other: until then no change starts a run. */
  readonly restingUntil: Date | null;
}

export interface FollowingPipeline {
  readonly id: PipelineId;
  readonly name: string;
  readonly source_type: string;
  readonly source_connection: string;
  readonly checkEverySeconds: number;
  /** It would start if its source changed. */
  readonly mayStart: boolean;
  /** It failed because its source does not record its changes, or cannot be read: it starts once its tables are recorded. */
  readonly ifRecorded: boolean;
  readonly position: FollowPosition;
  readonly tables: readonly string[];
}

interface PositionOfPipeline {
  readonly pipelineId: PipelineId;
  readonly position: FollowPosition;
  readonly tables: readonly string[];
}
