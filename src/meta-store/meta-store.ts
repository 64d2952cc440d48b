import type { AuditLog, KeyStore } from "./ports/access.ts";
import type { AnswerStore } from "./ports/answers.ts";
import type { BatchCommit } from "./ports/batch-commit.ts";
import type { ChangeFeed } from "./ports/changes.ts";
import type { FollowStore } from "./ports/follow.ts";
import type { Housekeeping } from "./ports/housekeeping.ts";
import type { Monitoring } from "./ports/monitoring.ts";
import type { PipelineStore, VersionStore } from "./ports/pipelines.ts";
import type { ReconcileStore } from "./ports/reconciles.ts";
import type { RejectStore } from "./ports/rejects.ts";
import type { Claim, RunQueue, RunRequests, ScheduleStore } from "./ports/run-queue.ts";
import type { RunnerRegistry } from "./ports/runners.ts";
import type { RunHistory, RunLogStore } from "./ports/runs.ts";
import type { StateStore } from "./ports/state.ts";

/**
 * The meta-store: pipelines, their state and their runs. The API and the runners meet only here. It has a part for each
 * kind of user, who asks for that part alone.
 *
 * Contract. Every method is one transaction. A change of status is a compare-and-set against the status machine; what
 * a runner changes is also bound to its claim (owner and epoch), so a runner that lost its lease changes nothing and
 * gets LEASE_LOST. Time is the server's, never the caller's.
 */
export interface MetaStore {
  readonly pipelines: PipelineStore;
  readonly versions: VersionStore;
  readonly state: StateStore;
  readonly requests: RunRequests;
  readonly queue: RunQueue;
  readonly schedules: ScheduleStore;
  readonly follow: FollowStore;
  readonly runs: RunHistory;
  readonly runLogs: RunLogStore;
  readonly keys: KeyStore;
  readonly audit: AuditLog;
  readonly answers: AnswerStore;
  readonly reconciles: ReconcileStore;
  readonly rejects: RejectStore;
  readonly runners: RunnerRegistry;
  readonly housekeeping: Housekeeping;
  readonly monitoring: Monitoring;
  readonly changes: ChangeFeed;
  /** What a run must commit together with each batch. */
  batchCommit(claim: Claim): BatchCommit;
  /** True when a session that put this mark into its database is in the meta-store's. */
  seesMark(mark: string): Promise<boolean>;
  /** Throws when the database cannot be reached or its schema does not fit. */
  checkReady(): Promise<void>;
  close(): Promise<void>;
}
