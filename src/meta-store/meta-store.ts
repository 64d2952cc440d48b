import type { Role } from "../domain/access.ts";
import type { ApiKey, NewApiKey } from "../domain/api-key.ts";
import type { AuditEntry, AuditedAttempt, AuditOrigin } from "../domain/audit.ts";
import type { Changes } from "../domain/change.ts";
import type { Checkpoint, ScanPosition } from "../domain/checkpoint.ts";
import type { ErrorCode } from "../domain/error-catalogue.ts";
import type { LineLevel } from "../domain/log-level.ts";
import type { NewPipeline, Pipeline, PipelineId, PipelinePatch, RunId, TargetOptions } from "../domain/pipeline.ts";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import type { PipelineVersion } from "../domain/pipeline-version.ts";
import type { Reconcile, ReconcileReport } from "../domain/reconcile.ts";
import type { Reject } from "../domain/reject.ts";
import type { BatchCounters, Run, RunStatus, RunTrigger } from "../domain/run.ts";
import type { NewRunLogLine, RunLogLine } from "../domain/run-log.ts";
import type { RegisteredTask, RunnerView } from "../domain/runner.ts";
import type { SourceMark } from "../domain/source-mark.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import type { TargetMark } from "../domain/target-mark.ts";
import type { Candidate, NextStart, Watermark } from "../domain/watermark.ts";
import type { ConnectionOptions } from "../postgres/connection.ts";

/**
 * The meta-store: pipelines, their state and their runs. The API and the runners meet only here.
 *
 * Contract. Every method is one transaction. A change of status is a compare-and-set against the status machine; what
 * a runner changes is also bound to its claim (owner and epoch), so a runner that lost its lease changes nothing and
 * gets LEASE_LOST. Time is the server's, never the caller's.
 */
export interface MetaStore {
  // Configuration
  /** By name. */
  listPipelines(page: PageRequest, filter?: PipelineFilter): Promise<Page<Pipeline>>;
  /** By id or by name. */
  getPipeline(idOrName: string): Promise<Pipeline>;
  createPipeline(pipeline: NewPipeline, author: string): Promise<Pipeline>;
  /**
   * Refuses fields that are locked while a runner holds the pipeline, and any change when the pipeline is no longer at
   * the expected version. Keeps the new configuration as a version.
   */
  updatePipeline(
    id: PipelineId,
    patch: PipelinePatch,
    author: string,
    check?: (merged: Pipeline) => void | Promise<void>,
    expectedVersion?: number,
  ): Promise<Pipeline>;
  /** Several at once, all or none. A refusal points at the pipeline by its place: `/pipelines/2/…`. */
  applyPipelines(changes: readonly PipelineChange[], author: string): Promise<Pipeline[]>;
  /** Refused while a runner holds the pipeline, or when it is not at the expected version. The target keeps its data. */
  deletePipeline(id: PipelineId, expectedVersion?: number): Promise<void>;
  /** Newest first. */
  listVersions(id: PipelineId, page: PageRequest): Promise<Page<VersionWithPrevious>>;
  getVersion(id: PipelineId, version: number): Promise<PipelineVersion>;

  // Requests
  requestRun(id: PipelineId, trigger: RunTrigger): Promise<Pipeline>;
  requestPause(id: PipelineId): Promise<Pipeline>;
  /** Withdraws a request at once, and lets a run end; the pipeline is then as it was before the request. */
  requestCancel(id: PipelineId): Promise<Pipeline>;
  /** Asks for the target as it was before the last full load. Refused while a run is requested or going on. */
  requestRestore(id: PipelineId): Promise<Pipeline>;
  /** Forgets where the pipeline is: the next run reads everything. Refused while a runner holds the pipeline. */
  resetState(id: PipelineId): Promise<void>;
  /** Keeps the watermark although query, key or target have changed. Refused while a runner holds the pipeline. */
  keepState(id: PipelineId): Promise<void>;
  /** The next incremental load starts there. Refused while a runner holds the pipeline. */
  setState(id: PipelineId, watermark: Watermark): Promise<void>;

  // What happened
  getState(id: PipelineId): Promise<PipelineState>;
  /** Newest first; `null`: of all pipelines. */
  listRuns(id: PipelineId | null, page: PageRequest, filter?: RunFilter): Promise<Page<Run>>;
  getRun(id: PipelineId, runId: string): Promise<Run>;

  // Logs of runs
  /** Lines of runs that are gone are left out. */
  appendRunLog(lines: readonly NewRunLogLine[]): Promise<void>;
  /** Oldest first. `after` may be the id of any line. */
  readRunLog(id: PipelineId, runId: string, page: RunLogRequest): Promise<RunLogPage>;

  // Keys of the API
  createKey(key: NewApiKey, author: string): Promise<CreatedKey>;
  listKeys(page: PageRequest): Promise<Page<ApiKey>>;
  /** Takes effect with the next request. A key that is revoked already stays as it is. */
  revokeKey(id: string): Promise<ApiKey>;
  /** What the check of a key needs. */
  findKey(id: string): Promise<StoredKey | undefined>;
  /** Notes the time, to the minute. */
  markKeyUsed(id: string): Promise<void>;

  // The audit log
  /**
   * Every change that `work` makes, also in the promises it starts, is recorded in the audit log, in the transaction
   * that makes the change. What only reads leaves no entry.
   */
  recording<T>(origin: AuditOrigin, work: () => T): T;
  recordAttempt(attempt: AuditedAttempt): Promise<void>;
  listAudit(page: AuditPage): Promise<Page<AuditEntry>>;

  // Comparing source and target
  /** Asking again while one waits or runs gives that one. */
  requestReconcile(id: PipelineId, author: string): Promise<Reconcile>;
  listReconciles(id: PipelineId, page: PageRequest): Promise<Page<Reconcile>>;
  getReconcile(id: PipelineId, reconcileId: string): Promise<Reconcile>;
  /** Takes the longest waiting one for this runner, or one whose runner disappeared. */
  claimReconcile(runnerId: string, leaseMs: number): Promise<ReconcileClaim | undefined>;
  /** Extends the lease and shows how far it is. False means the lease is lost: nobody waits for the result. */
  extendReconcile(claim: ReconcileClaim, leaseMs: number, rowsCompared: number): Promise<boolean>;
  /** False when the lease is lost. */
  finishReconcile(claim: ReconcileClaim, outcome: ReconcileOutcome): Promise<boolean>;

  // Rows that the target refused
  /** Newest first. */
  listRejects(id: PipelineId, page: RejectsPage): Promise<Page<Reject>>;
  /** Marks rejects, all or some, and requests the run that tries them again. Nothing marked, nothing requested. */
  retryRejects(id: PipelineId, ids: readonly number[] | undefined): Promise<number>;
  discardRejects(id: PipelineId, ids: readonly number[] | undefined): Promise<number>;
  /** Those marked for a retry, oldest first. */
  rejectsToRetry(id: PipelineId, limit: number): Promise<RejectToRetry[]>;
  /** Those whose row has no value in this column. */
  rejectsWithout(id: PipelineId, column: string): Promise<number[]>;
  /** They cannot be tried again; they stay, unmarked, and say why. */
  giveUpRetry(id: PipelineId, ids: readonly number[], failure: RunFailure): Promise<void>;

  /** How pipelines and runners are, for whoever watches from outside: at most so many pipelines one by one. */
  survey(mostPipelines: number): Promise<Survey>;

  // Runners
  registerRunner(runner: RunnerInfo): Promise<void>;
  /** Those seen within a day, the living first. */
  listRunners(): Promise<RunnerView[]>;
  /** The code tasks of all living runners. */
  listTasks(): Promise<RegisteredTask[]>;
  markRunnerSeen(runnerId: string): Promise<void>;
  markRunnerStopped(runnerId: string): Promise<void>;

  /** Takes the longest waiting pipeline for this runner and opens its run, or returns `undefined`. */
  claimNext(runnerId: string, leaseMs: number): Promise<Claim | undefined>;
  /**
   * Extends the lease, unless somebody has its row locked, and brings the status back. `undefined` means the lease is
   * lost: stop writing.
   */
  extendLease(claim: Claim, leaseMs: number): Promise<PipelineStatus | undefined>;
  /** What another thread needs to do the same for many claims at once. */
  leaseRenewal(): LeaseRenewal;
  /** What a run must commit together with each batch. */
  batchCommit(claim: Claim): BatchCommit;
  /** Ends the run and gives the pipeline up. Returns the pipeline's status afterwards. */
  finishRun(claim: Claim, outcome: RunOutcome): Promise<PipelineStatus>;
  /** Ends the run as failed and opens the next attempt under the same lease, at the checkpoint as it is now. */
  startNextAttempt(claim: Claim, failure: RunFailure): Promise<Claim>;
  /** The time that was waited before an attempt is not its own. */
  attemptBegins(claim: Claim): Promise<void>;
  /** Takes pipelines back whose lease ran out. */
  rescueExpired(): Promise<RescuedPipeline[]>;

  /** Runs with their logs, oldest first. Returns how many. Keeps those that still tell something. */
  deleteOldRuns(days: number, limit: number): Promise<number>;
  /** One whose time has come; nobody else gets it for a while. */
  claimAbandonedTarget(): Promise<AbandonedTarget | undefined>;
  /** `null`: nothing is left there. */
  settleAbandonedTarget(id: number, lookAfter: Date | null): Promise<void>;

  /** The schedules that come first: those without a plan, then by due time; and the time by the server's clock. */
  upcomingSchedules(limit: number): Promise<UpcomingSchedules>;
  /** Moves the schedule on from where it was read. When it was due and the pipeline is idle, or failed by trouble that may pass, its run is requested. */
  advanceSchedule(pipeline: ScheduledPipeline, plan: SchedulePlan): Promise<ScheduleOutcome>;

  /** Calls back when a pipeline asks for attention. Survives lost connections; may miss calls meanwhile. */
  onWork(wake: () => void): Promise<{ close(): Promise<void> }>;
  /**
   * Calls back with the id of a pipeline whose status, configuration or runs changed; with null when something may have
   * been missed. Batches do not call.
   */
  onChange(changed: (id: PipelineId | null) => void): Promise<{ close(): Promise<void> }>;
  /** The latest state of what changed since a point; `null`: only the point itself, and the runs under way. */
  changesSince(point: string | null): Promise<Changes>;

  // Requests that may be repeated
  beginRequest(request: KeyedRequest): Promise<KnownRequest>;
  keepAnswer(request: KeyedRequest, answer: StoredAnswer): Promise<void>;
  /** It came to nothing: whoever repeats it begins anew. */
  forgetRequest(request: KeyedRequest): Promise<void>;

  /** True when a session that put this mark into its database is in the meta-store's. */
  seesMark(mark: string): Promise<boolean>;
  /** Throws when the database cannot be reached or its schema does not fit. */
  checkReady(): Promise<void>;
  close(): Promise<void>;
}

export type PipelineChange =
  | { readonly create: NewPipeline }
  | { readonly update: PipelineId; readonly patch: PipelinePatch; readonly expectedVersion: number };

export interface PageRequest {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
}

export interface RejectsPage extends PageRequest {
  /** Only those of this run. */
  readonly runId?: string | undefined;
}

export interface RunLogRequest extends PageRequest {
  /** Only lines of this level, and graver ones. */
  readonly level?: LineLevel | undefined;
}

export interface Page<T> {
  readonly items: T[];
  readonly next: string | null;
}

export interface RunLogPage extends Page<RunLogLine> {
  readonly run_status: RunStatus;
  /** No more lines will come. */
  readonly over: boolean;
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
}

/** Every field that is given must fit. */
export interface PipelineFilter {
  readonly status?: PipelineStatus | undefined;
  readonly enabled?: boolean | undefined;
  readonly mode?: Pipeline["mode"] | undefined;
  /** How the name begins. */
  readonly name?: string | undefined;
  readonly target_table?: string | undefined;
}

export interface RunFilter {
  readonly status?: RunStatus | undefined;
  readonly trigger?: RunTrigger | undefined;
  readonly run_request?: number | undefined;
  readonly started_after?: Date | undefined;
  readonly started_before?: Date | undefined;
}

export interface VersionWithPrevious {
  readonly version: PipelineVersion;
  /** Null for the first. */
  readonly previous: PipelineVersion | null;
}

/** The key itself can be read only here, once. */
export type CreatedKey = ApiKey & { readonly key: string };

export interface StoredKey {
  readonly name: string;
  readonly role: Role;
  readonly secretHash: Buffer;
  readonly revoked: boolean;
  readonly expired: boolean;
  /** Its last use was noted within the last minute. */
  readonly useNoted: boolean;
}

export interface AuditPage extends PageRequest {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** An id or a name. */
  readonly object?: string | undefined;
}

export interface PipelineState extends Checkpoint {
  /** Where the next incremental load starts. */
  readonly watermark: Watermark;
  readonly watermarkFingerprint: string | null;
  readonly candidate: Candidate | null;
  /** The horizon of the unfinished incremental load. */
  readonly safePoint: string | null;
  /** The target that the checkpoint was made for; null where there is no checkpoint, or a person keeps it for any. */
  readonly targetMark: TargetMark | null;
  /** The source that the position was reached in; null where it is not known. */
  readonly sourceMark: SourceMark | null;
  /** The target was found to be written later than this meta-store knows of; nobody has decided yet. */
  readonly targetAhead: boolean;
  /** The last row that was processed, for people; without a watermark nothing starts there. */
  readonly progress: Watermark;
  readonly updatedAt: Date | null;
}

export interface RunnerInfo {
  readonly id: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly tasks?: readonly Omit<RegisteredTask, "runners">[];
  /** It marks itself as seen at least so often. */
  readonly reportEveryMs?: number;
}

/** A request that carries a key of its sender's, so that it can be sent twice and happens once. */
export interface KeyedRequest {
  readonly actor: string;
  readonly key: string;
  readonly operation: string;
  /** Of everything else in the request. */
  readonly hash: string;
}

export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * - `begun`: it is new, and the caller carries it out.
 * - `under_way`: somebody is carrying it out.
 * - `other`: the key belongs to another request.
 */
export type KnownRequest =
  | { readonly kind: "begun" | "under_way" | "other" }
  | { readonly kind: "answered"; readonly answer: StoredAnswer };

/** A pipeline in the hands of one runner. */
export interface Claim {
  readonly pipeline: Pipeline;
  readonly runId: RunId;
  readonly trigger: RunTrigger;
  /** Counted from 1. */
  readonly attempt: number;
  readonly runnerId: string;
  readonly epoch: number;
  readonly checkpoint: Checkpoint;
  /** Set when the run is to bring back the previous target instead of loading. */
  readonly restoreId: string | null;
  /** How long, when it was claimed, attempts had been failing without a batch in between; null: they had not. */
  readonly troubledMs: number | null;
}

/** Plain data, because threads share no objects. */
export interface LeaseRenewal {
  readonly connection: ConnectionOptions;
  /**
   * Takes the pipelines' ids, their epochs, the owner and the milliseconds of the lease. Returns `id`, `epoch` and
   * `status` of each lease that is still held, and whether it was `renewed`: a row that somebody has locked is passed
   * over. A lease that is not returned is lost.
   */
  readonly statement: string;
}

export interface BatchProgress {
  /** Null where reading cannot be continued, only repeated. */
  readonly position: ScanPosition | null;
  readonly fingerprint: string;
  readonly counters: BatchCounters;
  readonly effort: BatchEffort;
  readonly rejects: readonly RefusedRow[];
  /** Earlier rejects that are settled by this batch: their rows are written, gone, or refused anew. */
  readonly settledRejects: readonly number[];
  /** The horizon of an incremental load. */
  readonly safePoint: string | null;
  /** The batch number this commit builds on. */
  readonly expectedBatchNo: number;
  /** The target holds rows of it at once. */
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

export interface RejectToRetry {
  readonly id: number;
  readonly key: Readonly<Record<string, string | null>>;
}

/** What the fence read while it held the lease: requests reach the runner with each commit. */
export interface LeaseView {
  readonly status: PipelineStatus;
  readonly batchSize: number;
  readonly maxRejects: number;
  readonly maxDeletePercent: number;
}

interface CaughtUpPosition {
  readonly batchNo: number;
  readonly position: ScanPosition | null;
  readonly fingerprint: string | null;
  readonly safePoint: string | null;
}

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
  /** Runs a change elsewhere while the lease is locked, so that nobody can take the pipeline over meanwhile. */
  underLease(change: () => Promise<void>): Promise<void>;
  /** Inside the transaction that made a whole load visible: the load is over, the next one starts from nothing. */
  endLoadIn(transaction: SqlSession, rowsDeleted: number): Promise<void>;
  /** The same in a transaction of its own, with the lease locked around what makes a load elsewhere visible. */
  endLoad(rowsDeleted: number, makeVisible?: () => Promise<void>): Promise<void>;
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
  /** Says how the run works, for people. */
  describeRun(facts: RunFacts): Promise<void>;
}

interface RunFacts {
  readonly dataPath: string;
  readonly strategy: string;
  /** Null where nobody can tell. */
  readonly estimatedRows: number | null;
  /** An unfinished load is continued. */
  readonly resumed: boolean;
  /** What a person should know about it. */
  readonly notes?: readonly string[];
}

export type RunOutcome =
  /** `inParts`: as the source was at several moments, so a further run is requested. */
  | { readonly kind: "succeeded"; readonly inParts?: boolean }
  | { readonly kind: "paused" }
  | { readonly kind: "cancelled" }
  /** The runner stops; another one continues. */
  | { readonly kind: "handed_back" }
  | ({ readonly kind: "failed" } & RunFailure)
  /** It failed by trouble that passes: nobody claims the pipeline before the wait is over. */
  | ({
      readonly kind: "waiting";
      readonly waitMs: number;
      /** The trouble began with this attempt, which had committed batches before. */
      readonly isNew: boolean;
    } & RunFailure);

export interface RunFailure {
  readonly code: ErrorCode;
  readonly error: string;
}

/** A comparison in the hands of one runner. */
export interface ReconcileClaim {
  readonly id: string;
  readonly pipeline: Pipeline;
  readonly runnerId: string;
  readonly epoch: number;
}

export type ReconcileOutcome =
  | { readonly status: "MATCH" | "DIFFERENT" | "INCONCLUSIVE"; readonly report: ReconcileReport }
  | { readonly status: "INCONCLUSIVE" | "FAILED"; readonly failure: RunFailure }
  /** The runner stops; another one begins anew. */
  | { readonly status: "WAITING" };

export interface RescuedPipeline {
  readonly id: PipelineId;
  readonly name: string;
  /** The run that is over by this; null when there was none. */
  readonly runId: RunId | null;
  /** Why it failed; null where somebody had asked to cancel it. */
  readonly code: ErrorCode | null;
  readonly status: PipelineStatus;
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

export interface UpcomingSchedules {
  readonly now: Date;
  /** When the next pipeline that waits until trouble passes may be claimed. */
  readonly nextAttemptAt: Date | null;
  readonly schedules: readonly ScheduledPipeline[];
}

/** A schedule as it was read; it is moved on only if it still stands like this. */
export interface ScheduledPipeline {
  readonly id: PipelineId;
  readonly name: string;
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
export type ScheduleOutcome = "fired" | "moved" | "taken";
