import type { PipelineId, TargetOptions } from "../../domain/pipeline.ts";

/** What runners clear away beside their work. */
export interface Housekeeping {
  /** Runs with their logs, oldest first. Returns how many. Keeps those that still tell something. */
  deleteOldRuns(days: number, limit: number): Promise<number>;
  /** One whose time has come; nobody else gets it for a while. */
  claimAbandonedTarget(): Promise<AbandonedTarget | undefined>;
  /** `null`: nothing is left there. */
  settleAbandonedTarget(id: number, lookAfter: Date | null): Promise<void>;
}

/** A target that a pipeline no longer has: the pipeline was deleted, or given another one. */
export interface AbandonedTarget {
  readonly id: number;
  readonly pipelineId: PipelineId;
  readonly targetTable: string;
  readonly options: TargetOptions;
  /** Another pipeline has it by now. */
  readonly isShared: boolean;
  /** The pipeline has it again. */
  readonly isBack: boolean;
}
