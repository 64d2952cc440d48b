import type { Checkpoint } from "../../domain/checkpoint.ts";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineId, RunId } from "../../domain/pipeline.ts";
import type { PipelineStatus } from "../../domain/pipeline-status.ts";
import type { RunKind, RunLane, RunTrigger } from "../../domain/run.ts";
import type { ConnectionOptions } from "../../postgres/connection.ts";

/** What people and programs ask of a pipeline. */
export interface RunRequests {
  run(id: PipelineId, trigger: RunTrigger): Promise<Pipeline>;
  pause(id: PipelineId): Promise<Pipeline>;
  /** Withdraws a request at once, and lets a run end; the pipeline is then as it was before the request. */
  cancel(id: PipelineId): Promise<Pipeline>;
  /** Asks for the target as it was before the last full load. Refused while a run is requested or going on. */
  restore(id: PipelineId): Promise<Pipeline>;
}

/** How runners take what was asked for, hold it, and give it up. */
export interface RunQueue {
  /** Takes what waits longest in this lane (the one that writes, unless told otherwise), and opens its run. */
  claimNext(runnerId: string, leaseMs: number, lane?: RunLane): Promise<Claim | undefined>;
  /**
   * Extends the lease, unless somebody has its row locked, and brings the status back, as `LeaseRenewal` says.
   * `undefined` means the lease is lost: stop writing.
   */
  extendLease(claim: Claim, leaseMs: number): Promise<PipelineStatus | undefined>;
  /** What another thread needs to do the same for many claims at once. */
  leaseRenewal(): LeaseRenewal;
  /**
   * Ends the run and gives the pipeline up. Returns the pipeline's status afterwards; `undefined` for a run that only
   * reads, which has no part in it. Such a run, handed back, waits for another runner under the same id.
   */
  finishRun(claim: Claim, outcome: RunOutcome): Promise<PipelineStatus | undefined>;
  /** Ends the run as failed and opens the next attempt under the same lease, at the checkpoint as it is now. */
  startNextAttempt(claim: Claim, failure: RunFailure): Promise<Claim>;
  /** The time that was waited before an attempt is not its own. */
  attemptBegins(claim: Claim): Promise<void>;
  /** Takes runs back whose lease ran out. A runner that takes back its own was cut off, and is not lost. */
  rescueExpired(runnerId: string): Promise<RescuedRun[]>;
  /** Calls back when a pipeline or a run asks for attention. Survives lost connections; may miss calls meanwhile. */
  onWork(wake: () => void): Promise<{ close(): Promise<void> }>;
}

/** A run in the hands of one runner. */
export interface Claim {
  readonly kind: RunKind;
  readonly pipeline: Pipeline;
  readonly runId: RunId;
  readonly trigger: RunTrigger;
  /** Counted from 1. */
  readonly attempt: number;
  readonly runnerId: string;
  readonly epoch: number;
  readonly checkpoint: Checkpoint;
  /** The last claim before a person changed the state; 0: nobody did. */
  readonly decidedEpoch: number;
  /** The first attempt of its request: a name for what must happen once, however many attempts it takes. */
  readonly firstRunId: RunId;
  /** How long, when it was claimed, attempts had been failing without a batch in between; null: they had not. */
  readonly troubledMs: number | null;
}

/** Plain data, because threads share no objects. */
export interface LeaseRenewal {
  readonly connection: ConnectionOptions;
  /**
   * Takes the pipelines' ids, the lanes, the epochs, the owner and the milliseconds of the lease. Returns `id`, `lane`,
   * `epoch` and `status` of each lease that is still held, and whether it was `renewed`: a row that somebody has locked
   * is passed over. A lease that is not returned is lost. The status is the pipeline's where the run writes; a run that
   * only reads is RUNNING, whatever is asked of the pipeline.
   */
  readonly statement: string;
}

export type RunOutcome =
  /** `inParts`: as the source was at several moments, so a further run is requested. */
  | { readonly kind: "succeeded"; readonly inParts?: boolean }
  | { readonly kind: "paused" }
  | { readonly kind: "cancelled" }
  /** The runner stops; another one continues. */
  | { readonly kind: "handed_back" }
  /** `mayPass`: by trouble that ends without anybody's help. */
  | ({ readonly kind: "failed"; readonly mayPass: boolean } & RunFailure)
  /** It failed by trouble that passes: nobody claims the pipeline before the wait is over. */
  | ({
      readonly kind: "waiting";
      readonly waitMs: number;
      /** The trouble began with this attempt, which had committed batches before. */
      readonly isNew: boolean;
    } & RunFailure);

export interface RunFailure {
  readonly code: string;
  readonly error: string;
}

export interface RescuedRun {
  /** Of the pipeline. */
  readonly id: PipelineId;
  readonly name: string;
  readonly runId: RunId;
  readonly kind: RunKind;
  /** Why it failed; null where somebody had asked to cancel it, and where it begins again under the same id. */
  readonly code: ErrorCode | null;
  /** Of the pipeline. */
  readonly status: PipelineStatus;
}

export interface ScheduleStore {
  /**
   * The schedules that come first: those without a plan, then by due time; and the time by the server's clock. `since`: the
   * time of the look before; a pipeline whose waiting has ended since then is told, because nobody may have claimed it.
   */
  upcoming(limit: number, since: Date | null): Promise<UpcomingSchedules>;
  /** Moves the schedule on from where it was read. When it was due and the pipeline is idle, or failed by trouble that may pass, its run is requested. */
  advance(pipeline: ScheduledPipeline, plan: SchedulePlan): Promise<ScheduleOutcome>;
  /** Requests the run of each idle pipeline whose sweep came due while it was busy. */
  requestSweeps(): Promise<void>;
}

interface UpcomingSchedules {
  readonly now: Date;
  /** When the next pipeline that waits until trouble passes may be claimed. */
  readonly nextAttemptAt: Date | null;
  readonly schedules: readonly ScheduledPipeline[];
}

/** A schedule as it was read; it is moved on only if it still stands like this. */
export interface ScheduledPipeline {
  readonly id: PipelineId;
  readonly name: string;
  /** A load, or a sweep, which waits where the pipeline is busy. */
  readonly what: "run" | "sweep";
  readonly schedule: string;
  /** `null`: not planned yet. */
  readonly nextRunAt: Date | null;
}

export type SchedulePlan =
  | { readonly kind: "next"; readonly nextRunAt: Date }
  /** It cannot be planned, and is left alone until it is changed. */
  | { readonly kind: "refused"; readonly error: string };

/**
 * - `fired`: its run was requested.
 * - `moved`: only its next due time was set.
 * - `taken`: it no longer stands as it was read, or somebody holds its row this moment.
 */
type ScheduleOutcome = "fired" | "moved" | "taken";
