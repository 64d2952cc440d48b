import type { PipelineId } from "../../domain/pipeline.ts";
import { type ConnectionOptions, createPool } from "../../postgres/connection.ts";
import { seesMark } from "../../postgres/database-mark.ts";
import { databaseError } from "../../postgres/errors.ts";
import type { MetaStore } from "../meta-store.ts";
import { requireCurrentSchema } from "../migrate.ts";
import { claimAbandonedTarget, settleAbandonedTarget } from "./abandoned-targets.ts";
import { beginRequest, forgetRequest, keepAnswer } from "./answers.ts";
import { listAudit, recordAttempt, recording, recordingPool, unrecorded } from "./audit.ts";
import { changesSince } from "./changes.ts";
import { batchCommit, getState, keepState, resetState, setState } from "./checkpoints.ts";
import {
  attemptBegins,
  claimNext,
  extendLease,
  finishRun,
  RENEW_LEASES,
  rescueExpired,
  startNextAttempt,
} from "./claims.ts";
import { createKey, findKey, listKeys, markKeyUsed, revokeKey } from "./keys.ts";
import { listen } from "./listen.ts";
import {
  applyPipelines,
  createPipeline,
  deletePipeline,
  getPipeline,
  listPipelines,
  requestCancel,
  requestPause,
  requestRestore,
  requestRun,
  updatePipeline,
} from "./pipelines.ts";
import {
  claimReconcile,
  extendReconcile,
  finishReconcile,
  getReconcile,
  listReconciles,
  requestReconcile,
} from "./reconciles.ts";
import { discardRejects, giveUpRetry, listRejects, rejectsToRetry, rejectsWithout, retryRejects } from "./rejects.ts";
import { appendRunLog, readRunLog } from "./run-logs.ts";
import { listRunners, listTasks, markRunnerSeen, markRunnerStopped, registerRunner } from "./runners.ts";
import { deleteOldRuns, getRun, listRuns } from "./runs.ts";
import { advanceSchedule, upcomingSchedules } from "./schedules.ts";
import { survey } from "./survey.ts";
import { getVersion, listVersions } from "./versions.ts";

interface MetaStoreOptions extends ConnectionOptions {
  readonly maxConnections: number;
}

/** A statement of the meta-store is short; one that is not is stuck behind a lock, and an answer is due. */
const SESSION = { statement_timeout: "15s", lock_timeout: "10s", idle_in_transaction_session_timeout: "15s" };

export function openMetaStore(options: MetaStoreOptions): MetaStore {
  const connection = { ...options, settings: { ...SESSION, ...options.settings } };
  const pool = recordingPool(createPool({ ...connection, max: options.maxConnections }));
  const asking = <T>(what: string, answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => Promise.reject(databaseError(error, what)));

  return {
    listPipelines: (page, filter = {}) => asking("list the pipelines", listPipelines(pool, page, filter)),
    getPipeline: (idOrName) => asking("read the pipeline", getPipeline(pool, idOrName)),
    createPipeline: (pipeline, author) => asking("create the pipeline", createPipeline(pool, pipeline, author)),
    applyPipelines: (changes, author) => asking("apply the pipelines", applyPipelines(pool, changes, author)),
    updatePipeline: (id, patch, author, check, expectedVersion) =>
      asking("change the pipeline", updatePipeline(pool, id, patch, author, check, expectedVersion)),
    deletePipeline: (id, expectedVersion) => asking("delete the pipeline", deletePipeline(pool, id, expectedVersion)),
    listVersions: (id, page) => asking("list the versions", listVersions(pool, id, page)),
    getVersion: (id, version) => asking("read the version", getVersion(pool, id, version)),
    requestRun: (id, trigger) => asking("request the run", requestRun(pool, id, trigger)),
    requestPause: (id) => asking("request the pause", requestPause(pool, id)),
    requestCancel: (id) => asking("cancel the run", requestCancel(pool, id)),
    requestRestore: (id) => asking("request the restore", requestRestore(pool, id)),
    resetState: (id) => asking("reset the state", resetState(pool, id)),
    keepState: (id) => asking("keep the state", keepState(pool, id)),
    setState: (id, watermark) => asking("set the state", setState(pool, id, watermark)),
    getState: (id) => asking("read the state", getState(pool, id)),
    listRuns: (id, page, filter = {}) => asking("list the runs", listRuns(pool, id, page, filter)),
    getRun: (id, runId) => asking("read the run", getRun(pool, id, runId)),
    appendRunLog: (lines) => asking("keep the log of a run", appendRunLog(pool, lines)),
    readRunLog: (id, runId, page) => asking("read the log of a run", readRunLog(pool, id, runId, page)),
    createKey: (key, author) => asking("create the key", createKey(pool, key, author)),
    listKeys: (page) => asking("list the keys", listKeys(pool, page)),
    revokeKey: (id) => asking("revoke the key", revokeKey(pool, id)),
    findKey: (id) => asking("check the key", findKey(pool, id)),
    markKeyUsed: (id) => asking("note the use of the key", markKeyUsed(pool, id)),
    recording,
    recordAttempt: (attempt) => asking("write the audit log", recordAttempt(pool, attempt)),
    listAudit: (page) => asking("read the audit log", listAudit(pool, page)),
    requestReconcile: (id, author) => asking("request the reconcile", requestReconcile(pool, id, author)),
    listReconciles: (id, page) => asking("list the reconciles", listReconciles(pool, id, page)),
    getReconcile: (id, reconcileId) => asking("read the reconcile", getReconcile(pool, id, reconcileId)),
    claimReconcile: (runnerId, leaseMs) => asking("claim a reconcile", claimReconcile(pool, runnerId, leaseMs)),
    extendReconcile: (claim, leaseMs, rowsCompared) =>
      asking("extend the reconcile", extendReconcile(pool, claim, leaseMs, rowsCompared)),
    finishReconcile: (claim, outcome) => asking("finish the reconcile", finishReconcile(pool, claim, outcome)),
    listRejects: (id, page) => asking("list the rejects", listRejects(pool, id, page)),
    retryRejects: (id, ids) => asking("retry the rejects", retryRejects(pool, id, ids)),
    discardRejects: (id, ids) => asking("discard the rejects", discardRejects(pool, id, ids)),
    rejectsToRetry: (id, limit) => asking("read the rejects", rejectsToRetry(pool, id, limit)),
    rejectsWithout: (id, column) => asking("read the rejects", rejectsWithout(pool, id, column)),
    giveUpRetry: (id, ids, failure) => asking("keep the rejects", giveUpRetry(pool, id, ids, failure)),
    survey: (mostPipelines) => asking("survey the pipelines", survey(pool, mostPipelines)),
    registerRunner: (runner) => asking("register the runner", registerRunner(pool, runner)),
    listRunners: () => asking("list the runners", listRunners(pool)),
    listTasks: () => asking("list the tasks", listTasks(pool)),
    markRunnerSeen: (runnerId) => asking("report the runner alive", markRunnerSeen(pool, runnerId)),
    markRunnerStopped: (runnerId) => asking("report the runner stopped", markRunnerStopped(pool, runnerId)),
    claimNext: (runnerId, leaseMs) => asking("claim a pipeline", claimNext(pool, runnerId, leaseMs)),
    extendLease: (claim, leaseMs) => asking("extend the lease", extendLease(pool, claim, leaseMs)),
    leaseRenewal: () => ({ connection, statement: RENEW_LEASES }),
    batchCommit: (claim) => batchCommit(pool, claim),
    finishRun: (claim, outcome) => asking("finish the run", finishRun(pool, claim, outcome)),
    startNextAttempt: (claim, failure) => asking("start the next attempt", startNextAttempt(pool, claim, failure)),
    attemptBegins: (claim) => asking("begin the attempt", attemptBegins(pool, claim)),
    rescueExpired: () => asking("rescue lost pipelines", rescueExpired(pool)),
    deleteOldRuns: (days, limit) => asking("delete old runs", deleteOldRuns(pool, days, limit)),
    claimAbandonedTarget: () => asking("look for abandoned targets", claimAbandonedTarget(pool)),
    settleAbandonedTarget: (id, lookAfter) =>
      asking("settle an abandoned target", settleAbandonedTarget(pool, id, lookAfter)),
    upcomingSchedules: (limit) => asking("read the schedules", upcomingSchedules(pool, limit)),
    advanceSchedule: (pipeline, plan) => asking("advance the schedule", advanceSchedule(pool, pipeline, plan)),
    onWork: (wake) => asking("listen for work", listen(connection, "vitrina_pipelines", wake)),
    onChange: (changed) =>
      asking(
        "listen for changes",
        listen(connection, "vitrina_changes", (id) => changed(id as PipelineId | null)),
      ),
    changesSince: (point) => asking("read what changed", changesSince(pool, point)),
    beginRequest: (request) =>
      asking(
        "begin the request",
        unrecorded(() => beginRequest(pool, request)),
      ),
    keepAnswer: (request, answer) =>
      asking(
        "keep the answer",
        unrecorded(() => keepAnswer(pool, request, answer)),
      ),
    forgetRequest: (request) =>
      asking(
        "forget the request",
        unrecorded(() => forgetRequest(pool, request)),
      ),
    seesMark: (mark) => asking("look for the target's mark", seesMark(pool, mark)),
    checkReady: () => asking("check the meta-store", requireCurrentSchema(pool)),
    close: () => pool.end(),
  };
}
