import { type ConnectionOptions, createPool } from "../../postgres/connection.ts";
import { seesMark } from "../../postgres/database-mark.ts";
import type { MetaStore } from "../meta-store.ts";
import { requireCurrentSchema } from "../migrate.ts";
import { answerStore } from "./answers.ts";
import { asking } from "./asking.ts";
import { auditLog, recordingPool } from "./audit.ts";
import { changeFeed } from "./changes.ts";
import { batchCommit } from "./checkpoints.ts";
import { runQueue } from "./claims.ts";
import { followStore } from "./follow.ts";
import { housekeeping } from "./housekeeping.ts";
import { keyStore } from "./keys.ts";
import { pipelineStore } from "./pipelines.ts";
import { reconcileStore } from "./reconciles.ts";
import { rejectStore } from "./rejects.ts";
import { runRequests } from "./requests.ts";
import { runLogs } from "./run-logs.ts";
import { runnerRegistry } from "./runners.ts";
import { runHistory } from "./runs.ts";
import { scheduleStore } from "./schedules.ts";
import { stateStore } from "./state.ts";
import { monitoring } from "./survey.ts";
import { versionStore } from "./versions.ts";

interface MetaStoreOptions extends ConnectionOptions {
  readonly maxConnections: number;
}

/** A statement of the meta-store is short; one that is not is stuck behind a lock, and an answer is due. */
const SESSION = { statement_timeout: "15s", lock_timeout: "10s", idle_in_transaction_session_timeout: "15s" };

export function openMetaStore(options: MetaStoreOptions): MetaStore {
  const connection = { ...options, settings: { ...SESSION, ...options.settings } };
  const pool = recordingPool(createPool({ ...connection, max: options.maxConnections }));
  return {
    pipelines: pipelineStore(pool),
    versions: versionStore(pool),
    state: stateStore(pool),
    requests: runRequests(pool),
    queue: runQueue(pool, connection),
    schedules: scheduleStore(pool),
    follow: followStore(pool),
    runs: runHistory(pool),
    runLogs: runLogs(pool),
    keys: keyStore(pool),
    audit: auditLog(pool),
    answers: answerStore(pool),
    reconciles: reconcileStore(pool),
    rejects: rejectStore(pool),
    runners: runnerRegistry(pool),
    housekeeping: housekeeping(pool),
    monitoring: monitoring(pool),
    changes: changeFeed(pool, connection),
    batchCommit: (claim) => batchCommit(pool, claim),
    seesMark: asking("look for the target's mark", (mark) => seesMark(pool, mark)),
    checkReady: asking("check the meta-store", () => requireCurrentSchema(pool)),
    close: () => pool.end(),
  };
}
