import type { PipelineStatus } from "../../domain/pipeline-status.ts";

export interface Monitoring {
  /** How pipelines and runners are, for whoever watches from outside: at most so many pipelines one by one. */
  survey(mostPipelines: number): Promise<Survey>;
}

export interface Survey {
  readonly byStatus: ReadonlyMap<PipelineStatus, number>;
  /** Enabled pipelines that a runner could claim now. */
  readonly waiting: number;
  /** Enabled pipelines that wait until trouble passes. */
  readonly heldUp: number;
  /** 0 when none waits. */
  readonly oldestWaitingSeconds: number;
  readonly runnersAlive: number;
  /** Fell silent within the last hour, without signing off. */
  readonly runnersLost: number;
  /** Of the enabled ones, the first by name. */
  readonly pipelines: readonly PipelineVitals[];
  /** Enabled pipelines that are not among them. */
  readonly leftOut: number;
}

/** Times are seconds since 1970; null: there is none. */
export interface PipelineVitals {
  readonly name: string;
  readonly status: PipelineStatus;
  readonly schedule: string | null;
  /** When its configuration last changed. */
  readonly changedAtSeconds: number;
  /** Of incremental pipelines, as the source printed it. */
  readonly watermark: string | null;
  readonly lastSuccessSeconds: number | null;
  readonly lastRunRejected: number | null;
  /** Of pipelines that follow their source. */
  readonly follow: FollowVitals | null;
}

interface FollowVitals {
  readonly lastRoundSeconds: number | null;
  /** When all of the target was last compared. */
  readonly lastCompareSeconds: number | null;
  /** Rows that sweeps had to repair, over all. */
  readonly repaired: number;
}
