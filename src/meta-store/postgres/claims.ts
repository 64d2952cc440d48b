import type { ScanPosition } from "../../domain/checkpoint.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { MAX_LOSSES } from "../../domain/lease.ts";
import type { RunId } from "../../domain/pipeline.ts";
import {
  nextStatus,
  type PipelineEvent,
  type PipelineStatus,
  type RestingStatus,
  transitionsOf,
} from "../../domain/pipeline-status.ts";
import { type RunStatus, type RunTrigger, shortenError } from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { type ConnectionOptions, inTransaction, type Pool } from "../../postgres/connection.ts";
import type { Claim, RescuedPipeline, RunFailure, RunOutcome, RunQueue } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { listen } from "./listen.ts";
import { PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";
import { settleEarlierRejects } from "./rejects.ts";

/** What a claim needs beside its pipeline `p`: its `run`, and the checkpoint in the state `s`. */
const CLAIM_COLUMNS = `
  p.lease_owner, p.lease_epoch, p.restore_id, run.id AS run_id, run.trigger, run.attempt,
  extract(epoch FROM clock_timestamp() - p.troubled_since)::float8 * 1000 AS troubled_ms,
  s.scan_position, coalesce(s.batch_no, 0) AS batch_no, s.fingerprint`;

/** One statement: take the longest waiting pipeline, raise its epoch, open its run, and read its checkpoint. */
const CLAIM = `
  WITH candidate AS (
    SELECT id FROM etl.etl_pipelines
     WHERE enabled AND status = 'RUN_REQUESTED' AND (not_before IS NULL OR not_before <= clock_timestamp())
     ORDER BY run_requested_at, id
     LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
  ), p AS (
    UPDATE etl.etl_pipelines AS taken
       SET status = 'RUNNING', lease_owner = $1, lease_epoch = taken.lease_epoch + 1,
           lease_expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
      FROM candidate WHERE taken.id = candidate.id
    RETURNING taken.*
  ), run AS (
    INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, run_request, config_version, applied_version,
                              runner_id, lease_epoch)
    SELECT id, failed_attempts + 1, 'RUNNING', run_trigger, run_request, config_version, config_version, lease_owner, lease_epoch FROM p
    RETURNING id, trigger, attempt
  ), state AS (
    INSERT INTO etl.etl_state (pipeline_id) SELECT id FROM p ON CONFLICT (pipeline_id) DO NOTHING
  )
  SELECT ${PIPELINE_COLUMNS}, ${CLAIM_COLUMNS}
    FROM p CROSS JOIN run LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id`;

async function claimNext(pool: Pool, runnerId: string, leaseMs: number): Promise<Claim | undefined> {
  const { rows } = await pool.query(CLAIM, [runnerId, leaseMs]);
  return rows[0] === undefined ? undefined : claimFromRow(rows[0]);
}

function claimFromRow(row: Record<string, unknown>): Claim {
  return {
    pipeline: pipelineFromRow(row),
    runId: row["run_id"] as RunId,
    trigger: row["trigger"] as RunTrigger,
    attempt: row["attempt"] as number,
    runnerId: row["lease_owner"] as string,
    epoch: row["lease_epoch"] as number,
    restoreId: row["restore_id"] as string | null,
    troubledMs: row["troubled_ms"] as number | null,
    checkpoint: {
      scanPosition: row["scan_position"] as ScanPosition | null,
      batchNo: row["batch_no"] as number,
      fingerprint: row["fingerprint"] as string | null,
    },
  };
}

/**
 * Renews many leases of one owner. A locked row (its batch is being committed, or a person holds it) is passed over
 * and comes back as held but not renewed: waiting for it would let the other leases run out.
 */
const RENEW_LEASES = `
  WITH claim AS (
    SELECT id, epoch FROM unnest($1::uuid[], $2::bigint[]) AS c (id, epoch)
  ), free AS (
    SELECT p.id FROM etl.etl_pipelines p JOIN claim ON p.id = claim.id AND p.lease_epoch = claim.epoch
     WHERE p.lease_owner = $3 FOR NO KEY UPDATE OF p SKIP LOCKED
  ), renewed AS (
    UPDATE etl.etl_pipelines p
       SET lease_expires_at = clock_timestamp() + make_interval(secs => $4::float8 / 1000)
      FROM free WHERE p.id = free.id
    RETURNING p.id, p.status
  )
  SELECT p.id, p.lease_epoch AS epoch, coalesce(renewed.status, p.status) AS status, renewed.id IS NOT NULL AS renewed
    FROM claim JOIN etl.etl_pipelines p ON p.id = claim.id AND p.lease_epoch = claim.epoch AND p.lease_owner = $3
    LEFT JOIN renewed ON renewed.id = p.id`;

async function extendLease(pool: Pool, claim: Claim, leaseMs: number): Promise<PipelineStatus | undefined> {
  const { rows } = await pool.query(RENEW_LEASES, [[claim.pipeline.id], [claim.epoch], claim.runnerId, leaseMs]);
  return rows[0]?.status as PipelineStatus | undefined;
}

function eventsOf(outcome: RunOutcome): readonly PipelineEvent[] {
  switch (outcome.kind) {
    // A pause asked for after the last batch is still a pause: the next run finds nothing left and succeeds.
    case "succeeded":
      return outcome.inParts ? ["hand_back"] : ["succeed", "pause"];
    // Somebody may have asked to cancel it since the runner saw the request to pause.
    case "paused":
    case "cancelled":
      return ["pause", "cancel"];
    case "handed_back":
    case "waiting":
      return ["hand_back"];
    case "failed":
      return ["fail"];
  }
}

async function finishRun(pool: Pool, claim: Claim, outcome: RunOutcome): Promise<PipelineStatus> {
  return inTransaction(pool, async (client) => {
    const held = await lockLease(client, claim);
    const [status] = eventsOf(outcome).flatMap((event) => nextStatus(held.status, event, held.before) ?? []);
    if (status === undefined) throw leaseLost(claim);
    await client.query(
      `UPDATE etl.etl_pipelines p
          SET status = $2, lease_owner = NULL, lease_expires_at = NULL,
              run_requested_at = CASE WHEN $2 = 'RUN_REQUESTED' THEN clock_timestamp() END,
              run_trigger = CASE WHEN $2 = 'RUN_REQUESTED' THEN $3 END,
              failure_may_pass = coalesce($4, p.failure_may_pass), ${TROUBLE_AFTER[outcome.kind] ?? ""}
              restore_id = CASE WHEN $2 = 'RUN_REQUESTED' THEN p.restore_id END
        WHERE p.id = $1`,
      [
        claim.pipeline.id,
        status,
        triggerAfter(outcome, claim),
        outcome.kind === "failed" ? outcome.mayPass : null,
        ...(outcome.kind === "waiting" ? waitingValues(claim, outcome) : []),
      ],
    );
    const ended = runStatusAfter(held.status, outcome);
    await endRun(client, claim, ended, "code" in outcome ? outcome : undefined);
    if (ended === "SUCCESS") {
      await client.query(
        `UPDATE etl.etl_state SET scan_position = NULL, fingerprint = NULL, updated_at = clock_timestamp()
          WHERE pipeline_id = $1`,
        [claim.pipeline.id],
      );
      if (claim.pipeline.mode === "full") await settleEarlierRejects(client, claim.pipeline.id);
    }
    return status;
  });
}

/** Taken back by a trigger where a pause or an end was asked for meanwhile. */
const BEGIN_WAITING = `
              not_before = clock_timestamp() + make_interval(secs => $5::float8 / 1000),
              troubled_since = CASE WHEN $6 THEN clock_timestamp() ELSE coalesce(p.troubled_since, clock_timestamp()) END,
              failed_attempts = $7, trouble_code = $8, trouble = $9,`;

const TROUBLE_AFTER: Partial<Record<RunOutcome["kind"], string>> = {
  waiting: BEGIN_WAITING,
  // Where a further run follows, it is the success that goes before it.
  succeeded: "status_before = 'IDLE', troubled_since = NULL, failed_attempts = 0, trouble_code = NULL, trouble = NULL,",
};

function waitingValues({ attempt }: Claim, outcome: RunOutcome & { kind: "waiting" }): unknown[] {
  return [outcome.waitMs, outcome.isNew, attempt, outcome.code, shortenError(outcome.error)];
}

/** What the run is for that follows by itself. */
function triggerAfter({ kind }: RunOutcome, { trigger }: Claim): RunTrigger {
  if (kind === "waiting") return trigger;
  return kind === "succeeded" ? "follow_up" : "recovery";
}

function runStatusAfter(held: PipelineStatus, outcome: RunOutcome): RunStatus {
  if ("code" in outcome) return "FAILED";
  if (held === "PAUSE_REQUESTED") return "PAUSED";
  // What was read in parts is a success only with the run that follows.
  if (outcome.kind === "succeeded" && (held === "RUNNING" || !outcome.inParts)) return "SUCCESS";
  return held === "CANCEL_REQUESTED" ? "CANCELLED" : "HANDED_BACK";
}

async function endRun(client: SqlSession, claim: Claim, status: RunStatus, failure?: RunFailure): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE etl.etl_runs SET status = $2, finished_at = clock_timestamp(), error_code = $3, error = $4
      WHERE id = $1 AND status = 'RUNNING'`,
    [claim.runId, status, failure?.code ?? null, failure ? shortenError(failure.error) : null],
  );
  if (rowCount !== 1) throw leaseLost(claim);
}

const LOCK_LEASE = `
  SELECT status, status_before FROM etl.etl_pipelines
   WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3 FOR NO KEY UPDATE`;

interface HeldStatus {
  readonly status: PipelineStatus;
  /** Before the run was requested. */
  readonly before: RestingStatus;
}

/** As it is when the row is locked: until the end of the transaction nobody can ask for anything else. */
async function lockLease(client: SqlSession, claim: Claim): Promise<HeldStatus> {
  const { rows } = await client.query(LOCK_LEASE, [claim.pipeline.id, claim.runnerId, claim.epoch]);
  if (rows[0] === undefined) throw leaseLost(claim);
  return { status: rows[0]["status"] as PipelineStatus, before: rows[0]["status_before"] as RestingStatus };
}

const NEXT_ATTEMPT = `
  WITH run AS (
    INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, run_request, config_version, applied_version,
                              runner_id, lease_epoch)
    SELECT id, $2, 'RUNNING', $3, run_request, config_version, config_version, lease_owner, lease_epoch
      FROM etl.etl_pipelines WHERE id = $1
    RETURNING id, pipeline_id, trigger, attempt
  )
  SELECT ${PIPELINE_COLUMNS}, ${CLAIM_COLUMNS}
    FROM run JOIN etl.etl_pipelines p ON p.id = run.pipeline_id LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id`;

async function startNextAttempt(pool: Pool, claim: Claim, failure: RunFailure): Promise<Claim> {
  return inTransaction(pool, async (client) => {
    await lockLease(client, claim);
    await endRun(client, claim, "FAILED", failure);
    const { rows } = await client.query(NEXT_ATTEMPT, [claim.pipeline.id, claim.attempt + 1, claim.trigger]);
    return claimFromRow(rows[0]);
  });
}

async function attemptBegins(pool: Pool, { runId }: Claim): Promise<void> {
  await pool.query("UPDATE etl.etl_runs SET started_at = clock_timestamp() WHERE id = $1 AND status = 'RUNNING'", [
    runId,
  ]);
}

/**
 * The run of a lost runner is FAILED; its pipeline goes on by itself, unless the last runs were all lost before they
 * committed a single batch: then something in the pipeline kills the runners, and a person must look. A run that
 * somebody wanted to cancel is CANCELLED by this, and nothing goes on.
 */
const RESCUE = `
  WITH expired AS (
    SELECT id, status = 'CANCEL_REQUESTED' AS cancelled FROM etl.etl_pipelines
     WHERE status IN ('RUNNING', 'PAUSE_REQUESTED', 'CANCEL_REQUESTED') AND lease_expires_at < clock_timestamp()
     FOR NO KEY UPDATE SKIP LOCKED
  ), lost AS (
    UPDATE etl.etl_runs r
       SET status = CASE WHEN expired.cancelled THEN 'CANCELLED' ELSE 'FAILED' END, finished_at = clock_timestamp(),
           error_code = CASE WHEN expired.cancelled THEN NULL
                             WHEN pg_postmaster_start_time() > r.started_at THEN 'DATABASE_RESTARTED'
                             WHEN r.runner_id = $4 THEN 'RUNNER_CUT_OFF' ELSE 'RUNNER_LOST' END,
           error = CASE WHEN expired.cancelled THEN NULL
                        WHEN pg_postmaster_start_time() > r.started_at
                        THEN 'PostgreSQL, which keeps the meta-store, was restarted during the run.'
                        WHEN r.runner_id = $4
                        THEN 'The runner lives, but could not renew its lease in time: it was cut off from the meta-store, or stood still.'
                        ELSE 'No sign of life came from the runner until its lease ran out: it was killed, frozen, or cut off from the meta-store.' END
      FROM expired WHERE r.pipeline_id = expired.id AND r.status = 'RUNNING'
    RETURNING r.id, r.pipeline_id, r.batches, r.error_code
  ), judged AS (
    SELECT e.id, l.id AS run_id, l.error_code,
           l.batches = 0 AND NOT e.cancelled AND (
             SELECT count(*) FILTER (WHERE recent.error_code IN ('RUNNER_LOST', 'RUNNER_CUT_OFF', 'DATABASE_RESTARTED') AND recent.batches = 0)
               FROM (SELECT r.error_code, r.batches FROM etl.etl_runs r
                      WHERE r.pipeline_id = e.id AND r.id <> l.id
                      ORDER BY r.started_at DESC LIMIT $3 - 1) recent) = $3 - 1 AS hopeless
      FROM expired e LEFT JOIN lost l ON l.pipeline_id = e.id
  )
  UPDATE etl.etl_pipelines p
     SET status = CASE WHEN judged.hopeless THEN 'FAILED' ELSE coalesce(t.to_status, p.status_before) END,
         failure_may_pass = p.failure_may_pass AND NOT coalesce(judged.hopeless, false),
         lease_owner = NULL, lease_expires_at = NULL,
         run_requested_at = CASE WHEN t.to_status = 'RUN_REQUESTED' THEN clock_timestamp() END,
         run_trigger = CASE WHEN t.to_status = 'RUN_REQUESTED' THEN 'recovery' END,
         restore_id = CASE WHEN t.to_status = 'RUN_REQUESTED' AND NOT coalesce(judged.hopeless, false) THEN p.restore_id END
    FROM judged, unnest($1::text[], $2::text[]) AS t (from_status, to_status)
   WHERE p.id = judged.id AND p.status = t.from_status
  RETURNING p.id, p.name, p.status, judged.run_id, judged.error_code`;

async function rescueExpired(pool: Pool, runnerId: string): Promise<RescuedPipeline[]> {
  const { from, to } = transitionsOf("hand_back");
  const { rows } = await pool.query(RESCUE, [from, to, MAX_LOSSES, runnerId]);
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    status: row.status,
    runId: row.run_id,
    code: row.error_code,
  }));
}

export function leaseLost(claim: Claim): VitrinaError {
  return new VitrinaError(
    "LEASE_LOST",
    `The lease of ${claim.pipeline.name} (epoch ${claim.epoch}) is gone; nothing more is written under it.`,
  );
}

export function runQueue(pool: Pool, connection: ConnectionOptions): RunQueue {
  return {
    claimNext: asking("claim a pipeline", (runnerId, leaseMs) => claimNext(pool, runnerId, leaseMs)),
    extendLease: asking("extend the lease", (claim, leaseMs) => extendLease(pool, claim, leaseMs)),
    leaseRenewal: () => ({ connection, statement: RENEW_LEASES }),
    finishRun: asking("finish the run", (claim, outcome) => finishRun(pool, claim, outcome)),
    startNextAttempt: asking("start the next attempt", (claim, failure) => startNextAttempt(pool, claim, failure)),
    attemptBegins: asking("begin the attempt", (claim) => attemptBegins(pool, claim)),
    rescueExpired: asking("rescue lost pipelines", (runnerId) => rescueExpired(pool, runnerId)),
    onWork: asking("listen for work", (wake) => listen(connection, "vitrina_pipelines", wake)),
  };
}
