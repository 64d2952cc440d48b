import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import {
  nextStatus,
  PIPELINE_STATUSES,
  type PipelineEvent,
  type PipelineStatus,
  RESTING_STATUSES,
} from "../../domain/pipeline-status.ts";
import { verdictOfFailure } from "../../domain/reconcile.ts";
import {
  laneOf,
  RUN_KINDS,
  RUN_TRIGGERS,
  type RunLane,
  type RunStatus,
  type RunTrigger,
  shortenError,
} from "../../domain/run.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { type ConnectionOptions, inTransaction, type Pool } from "../../postgres/connection.ts";
import type { Claim, RunFailure, RunOutcome, RunQueue } from "../ports/run-queue.ts";
import { asking } from "./asking.ts";
import { listen } from "./listen.ts";
import { PIPELINE_COLUMNS, pipelineFromRow } from "./pipeline-row.ts";
import { settleEarlierRejects } from "./rejects.ts";
import { rescueExpired } from "./rescue.ts";
import { decodeRow, rowOf, runId } from "./rows.ts";
import { CLAIMABLE, statusAfter } from "./statuses.ts";

/** What a claim needs beside its pipeline `p`: its `run`, and the checkpoint in the state `s`. */
const CLAIM_COLUMNS = `
  run.id AS run_id, run.kind, run.trigger, run.attempt, run.runner_id, run.lease_epoch,
  coalesce(CASE WHEN run.kind = 'restore' THEN (
    SELECT first.id FROM etl.etl_runs first
     WHERE first.pipeline_id = p.id AND first.kind = 'restore' AND first.run_request = p.run_request
     ORDER BY first.started_at, first.id LIMIT 1) END, run.id) AS first_run_id,
  extract(epoch FROM clock_timestamp() - p.troubled_since)::float8 * 1000 AS troubled_ms,
  s.scan_position, coalesce(s.batch_no, 0) AS batch_no, s.fingerprint, coalesce(s.decided_epoch, 0) AS decided_epoch`;

const LEASE_END = "clock_timestamp() + make_interval(secs => $2::float8 / 1000)";

/** Each is one statement. The rows of a run that writes begin with its claim, those of one that reads with the request. */
const CLAIM: Record<RunLane, string> = {
  /** Takes the longest waiting pipeline, raises its epoch, opens its run, and reads its checkpoint. */
  write: `
  WITH candidate AS (
    SELECT id, gen_random_uuid() AS run_id FROM etl.etl_pipelines
     WHERE enabled AND status IN (${CLAIMABLE}) AND (not_before IS NULL OR not_before <= clock_timestamp())
     ORDER BY run_requested_at, id
     LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
  ), p AS (
    UPDATE etl.etl_pipelines AS taken
       SET status = ${statusAfter("claim", "taken")}, run_id = candidate.run_id, lease_epoch = taken.lease_epoch + 1
      FROM candidate WHERE taken.id = candidate.id
    RETURNING taken.*
  ), run AS (
    INSERT INTO etl.etl_runs (id, pipeline_id, kind, attempt, status, trigger, run_request, config_version,
                              applied_version, runner_id, lease_epoch, lease_expires_at)
    SELECT run_id, id, run_kind, failed_attempts + 1, 'RUNNING', run_trigger, run_request, config_version,
           config_version, $1, lease_epoch, ${LEASE_END} FROM p
    RETURNING *
  ), state AS (
    INSERT INTO etl.etl_state (pipeline_id) SELECT id FROM p ON CONFLICT (pipeline_id) DO NOTHING
  )
  SELECT ${PIPELINE_COLUMNS}, ${CLAIM_COLUMNS}
    FROM p CROSS JOIN run LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id`,
  /** Takes the run that was asked for first. The pipeline is left alone: it may run meanwhile. */
  read: `
  WITH candidate AS (
    SELECT id FROM etl.etl_runs WHERE status = 'REQUESTED'
     ORDER BY requested_at, id
     LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
  ), run AS (
    UPDATE etl.etl_runs AS taken
       SET status = 'RUNNING', runner_id = $1, lease_epoch = taken.lease_epoch + 1, lease_expires_at = ${LEASE_END},
           started_at = clock_timestamp(), rows_read = 0, verdict = NULL, report = NULL,
           config_version = p.config_version, applied_version = p.config_version
      FROM candidate, etl.etl_pipelines p WHERE taken.id = candidate.id AND p.id = taken.pipeline_id
    RETURNING taken.*
  )
  SELECT ${PIPELINE_COLUMNS}, ${CLAIM_COLUMNS}
    FROM run JOIN etl.etl_pipelines p ON p.id = run.pipeline_id LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id`,
};

const claimRow = z.object({
  kind: z.enum(RUN_KINDS),
  run_id: runId,
  first_run_id: runId,
  trigger: z.enum(RUN_TRIGGERS),
  attempt: z.int(),
  runner_id: z.guid(),
  lease_epoch: z.int(),
  troubled_ms: z.number().nullable(),
  scan_position: z.array(z.string()).nullable(),
  batch_no: z.int(),
  fingerprint: z.string().nullable(),
  decided_epoch: z.int(),
});

function claimFromRow(row: unknown): Claim {
  const { run_id, first_run_id, runner_id, lease_epoch, troubled_ms, ...claim } = decodeRow(claimRow, row);
  const { kind, trigger, attempt, scan_position, batch_no, fingerprint, decided_epoch } = claim;
  return {
    kind,
    pipeline: pipelineFromRow(row),
    runId: run_id,
    trigger,
    attempt,
    runnerId: runner_id,
    epoch: lease_epoch,
    firstRunId: first_run_id,
    troubledMs: troubled_ms,
    checkpoint: { scanPosition: scan_position, batchNo: batch_no, fingerprint },
    decidedEpoch: decided_epoch,
  };
}

/**
 * Renews many leases of one owner. A locked row (its batch is being committed, or a person holds it) is passed over
 * and comes back as held but not renewed: waiting for it would let the other leases run out. Attempts follow each other
 * under one lease, so it is named by its epoch.
 */
const RENEW_LEASES = `
  WITH held AS (
    SELECT r.id AS run_id, p.id, r.lane, r.lease_epoch AS epoch, CASE r.lane WHEN 'write' THEN p.status ELSE r.status END AS status
      FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS claim (pipeline_id, lane, epoch)
      JOIN etl.etl_runs r ON r.pipeline_id = claim.pipeline_id AND r.lane = claim.lane AND r.status = 'RUNNING'
       AND r.runner_id = $4 AND r.lease_epoch = claim.epoch
      JOIN etl.etl_pipelines p ON p.id = r.pipeline_id AND (r.lane = 'read' OR p.lease_epoch = claim.epoch)
  ), free AS (
    SELECT r.id FROM etl.etl_runs r JOIN held ON r.id = held.run_id
     WHERE r.status = 'RUNNING' AND r.runner_id = $4 AND r.lease_epoch = held.epoch
       FOR NO KEY UPDATE OF r SKIP LOCKED
  ), renewed AS (
    UPDATE etl.etl_runs r
       SET lease_expires_at = clock_timestamp() + make_interval(secs => $5::float8 / 1000)
      FROM free WHERE r.id = free.id
    RETURNING r.id
  )
  SELECT held.id, held.lane, held.epoch, held.status, renewed.id IS NOT NULL AS renewed
    FROM held LEFT JOIN renewed ON renewed.id = held.run_id`;

const renewedRow = z.object({ status: z.enum(PIPELINE_STATUSES) });

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

async function finishReading(pool: Pool, claim: Claim, outcome: RunOutcome): Promise<void> {
  if (outcome.kind !== "failed") return endRun(pool, claim, outcome.kind === "succeeded" ? "SUCCESS" : "REQUESTED");
  await inTransaction(pool, async (session) => {
    await endRun(session, claim, "FAILED", outcome);
    await session.query("UPDATE etl.etl_runs SET verdict = $2, report = NULL WHERE id = $1", [
      claim.runId,
      verdictOfFailure(outcome),
    ]);
  });
}

function finishWriting(pool: Pool, claim: Claim, outcome: RunOutcome): Promise<PipelineStatus> {
  return inTransaction(pool, async (session) => {
    const held = await lockLease(session, claim);
    const [status] = eventsOf(outcome).flatMap((event) => nextStatus(held.status, event, held.status_before) ?? []);
    if (status === undefined) throw leaseLost(claim);
    await session.query(
      `UPDATE etl.etl_pipelines p
          SET status = $2, run_id = NULL, ${TROUBLE_AFTER[outcome.kind] ?? ""}
              run_requested_at = CASE WHEN $2 IN (${CLAIMABLE}) THEN clock_timestamp() END,
              run_trigger = CASE WHEN $2 IN (${CLAIMABLE}) THEN $3 END,
              failure_may_pass = coalesce($4, p.failure_may_pass)
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
    await endRun(session, claim, ended, "code" in outcome ? outcome : undefined);
    if (ended === "SUCCESS") {
      await session.query(
        `UPDATE etl.etl_state SET scan_position = NULL, fingerprint = NULL, updated_at = clock_timestamp()
          WHERE pipeline_id = $1`,
        [claim.pipeline.id],
      );
      if (claim.kind === "load" && claim.pipeline.mode === "full")
        await settleEarlierRejects(session, claim.pipeline.id);
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
  succeeded: `status_before = '${nextStatus("RUNNING", "succeed")}', troubled_since = NULL, failed_attempts = 0, trouble_code = NULL, trouble = NULL,`,
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

async function endRun(session: SqlSession, claim: Claim, status: RunStatus, failure?: RunFailure): Promise<void> {
  const { rowCount } = await session.query(
    `UPDATE etl.etl_runs
        SET status = $4, lease_expires_at = NULL, error_code = $5, error = $6,
            finished_at = CASE WHEN $4 <> 'REQUESTED' THEN clock_timestamp() END
      WHERE id = $1 AND status = 'RUNNING' AND runner_id = $2 AND lease_epoch = $3`,
    [
      claim.runId,
      claim.runnerId,
      claim.epoch,
      status,
      failure?.code ?? null,
      failure ? shortenError(failure.error) : null,
    ],
  );
  if (rowCount !== 1) throw leaseLost(claim);
}

const LOCK_LEASE = `
  SELECT p.status, p.status_before, r.lease_expires_at FROM etl.etl_runs r JOIN etl.etl_pipelines p ON p.run_id = r.id
   WHERE r.id = $1 AND r.status = 'RUNNING' AND r.runner_id = $2 AND r.lease_epoch = $3 AND p.lease_epoch = $3
     FOR NO KEY UPDATE`;

/** `status_before`: before the run was requested. */
const heldRow = z.object({
  status: z.enum(PIPELINE_STATUSES),
  status_before: z.enum(RESTING_STATUSES),
  lease_expires_at: z.date(),
});

/** As it is when the row is locked: until the end of the transaction nobody can ask for anything else. */
async function lockLease(session: SqlSession, claim: Claim): Promise<z.infer<typeof heldRow>> {
  const held = rowOf(heldRow, await session.query(LOCK_LEASE, [claim.runId, claim.runnerId, claim.epoch]));
  if (held === undefined) throw leaseLost(claim);
  return held;
}

/** The lease goes over to it as it is. */
const NEXT_ATTEMPT = `
  WITH run AS (
    INSERT INTO etl.etl_runs (pipeline_id, kind, attempt, status, trigger, run_request, config_version, applied_version,
                              runner_id, lease_epoch, lease_expires_at)
    SELECT id, run_kind, $2, 'RUNNING', $3, run_request, config_version, config_version, $4, lease_epoch, $5
      FROM etl.etl_pipelines WHERE id = $1
    RETURNING *
  ), p AS (
    UPDATE etl.etl_pipelines AS held SET run_id = run.id FROM run WHERE held.id = run.pipeline_id RETURNING held.*
  )
  SELECT ${PIPELINE_COLUMNS}, ${CLAIM_COLUMNS} FROM p CROSS JOIN run LEFT JOIN etl.etl_state s ON s.pipeline_id = p.id`;

export function leaseLost(claim: Claim): VitrinaError {
  return new VitrinaError(
    "LEASE_LOST",
    `The lease of ${claim.pipeline.name} (epoch ${claim.epoch}) is gone; nothing more is written under it.`,
  );
}

export function runQueue(pool: Pool, connection: ConnectionOptions): RunQueue {
  return {
    claimNext: asking("claim a run", async (runnerId, leaseMs, lane = "write") => {
      const { rows } = await pool.query(CLAIM[lane], [runnerId, leaseMs]);
      return rows[0] === undefined ? undefined : claimFromRow(rows[0]);
    }),

    extendLease: asking("extend the lease", async ({ pipeline, kind, epoch, runnerId }, leaseMs) => {
      const renewed = await pool.query(RENEW_LEASES, [[pipeline.id], [laneOf(kind)], [epoch], runnerId, leaseMs]);
      return rowOf(renewedRow, renewed)?.status;
    }),

    leaseRenewal: () => ({ connection, statement: RENEW_LEASES }),

    finishRun: asking("finish the run", async (claim, outcome) => {
      if (laneOf(claim.kind) === "write") return finishWriting(pool, claim, outcome);
      await finishReading(pool, claim, outcome);
      return undefined;
    }),

    startNextAttempt: asking("start the next attempt", (claim, failure) =>
      inTransaction(pool, async (session) => {
        const { lease_expires_at } = await lockLease(session, claim);
        await endRun(session, claim, "FAILED", failure);
        const { pipeline, attempt, trigger, runnerId } = claim;
        const values = [pipeline.id, attempt + 1, trigger, runnerId, lease_expires_at];
        const { rows } = await session.query(NEXT_ATTEMPT, values);
        return claimFromRow(rows[0]);
      }),
    ),

    attemptBegins: asking("begin the attempt", async ({ runId }) => {
      await pool.query("UPDATE etl.etl_runs SET started_at = clock_timestamp() WHERE id = $1 AND status = 'RUNNING'", [
        runId,
      ]);
    }),

    rescueExpired: asking("rescue lost runs", (runnerId) => rescueExpired(pool, runnerId)),

    onWork: asking("listen for work", (wake) => listen(connection, "vitrina_pipelines", wake)),
  };
}
