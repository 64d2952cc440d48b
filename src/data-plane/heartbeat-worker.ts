/**
 * The heartbeat thread of a runner: renews all its leases over a connection of its own, so neither a blocked event
 * loop nor a starved pool of the runner can lose them. It only reports; the runner decides.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import { type Client, connect } from "../postgres/connection.ts";
import {
  type FromHeartbeatThread,
  type HeartbeatThreadData,
  type HeldLease,
  monotonicMs,
  type ToHeartbeatThread,
} from "./heartbeat-messages.ts";

const { renewal, runnerId, timing } = workerData as HeartbeatThreadData;
const port = parentPort as MessagePort;

/** The lease keeps running while there is no connection, so the first new attempts come at once. */
const FIRST_RETRY_MS = 50;
/** A row was locked when its lease should have been renewed: the lock is short, so look again soon. */
const BUSY_RETRY_MS = 100;

interface Lease extends HeldLease {
  expiry?: NodeJS.Timeout;
  status?: string;
}

const leases = new Map<string, Lease>();
let client: Client | undefined;
let failures = 0;

port.on("message", (message: ToHeartbeatThread) => {
  switch (message.kind) {
    case "hold":
      leases.set(message.lease.key, message.lease);
      loseAt(message.lease, message.lease.validUntil);
      break;
    case "release":
      forget(message.key);
      break;
    case "close":
      void close();
      break;
  }
});
report({ kind: "ready" });
void beatForEver();

async function beatForEver(): Promise<never> {
  for (;;) await delay(await beat());
}

/** Returns how long to wait until the next beat. */
async function beat(): Promise<number> {
  try {
    const allRenewed = await renewAll();
    failures = 0;
    return allRenewed ? timing.heartbeatMs : Math.min(BUSY_RETRY_MS, timing.heartbeatMs);
  } catch (error) {
    report({ kind: "trouble", message: error instanceof Error ? error.message : String(error) });
    disconnect();
    failures += 1;
    return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), timing.heartbeatMs);
  }
}

async function renewAll(): Promise<boolean> {
  client ??= await connect({
    ...renewal.connection,
    applicationName: `${renewal.connection.applicationName} heartbeat`,
    settings: { ...renewal.connection.settings, statement_timeout: `${timing.heartbeatMs}ms` },
  });
  if (leases.size === 0) return true;
  const asked = [...leases.values()];
  const sentAt = monotonicMs();
  const answers = await askServer(client, asked);
  for (const lease of asked) settle(lease, answers.get(lease.key), sentAt);
  return asked.every(({ key }) => answers.get(key)?.renewed !== false);
}

interface RenewedLease {
  readonly status: PipelineStatus;
  readonly renewed: boolean;
}

async function askServer(connection: Client, asked: readonly Lease[]): Promise<Map<string, RenewedLease>> {
  const ids = asked.map(({ pipelineId }) => pipelineId);
  const lanes = asked.map(({ lane }) => lane);
  const epochs = asked.map(({ epoch }) => epoch);
  // A connection that does not answer is dead, even if no error says so: ending it fails the query.
  const giveUp = setTimeout(disconnect, timing.heartbeatMs);
  try {
    const { rows } = await connection.query(renewal.statement, [ids, lanes, epochs, runnerId, timing.durationMs]);
    return new Map(
      asked.flatMap(({ key, pipelineId, lane, epoch }) => {
        const row = rows.find((found) => found.id === pipelineId && found.lane === lane && found.epoch === epoch);
        return row === undefined ? [] : [[key, row as RenewedLease]];
      }),
    );
  } finally {
    clearTimeout(giveUp);
  }
}

function settle(lease: Lease, answer: RenewedLease | undefined, sentAt: number): void {
  // Released or expired before the answer arrived.
  if (leases.get(lease.key) !== lease) return;
  if (answer === undefined) {
    lose(lease, "taken");
    return;
  }
  if (answer.renewed) loseAt(lease, sentAt + timing.durationMs);
  if (answer.status === lease.status) return;
  lease.status = answer.status;
  report({ kind: "status", key: lease.key, status: answer.status });
}

function loseAt(lease: Lease, validUntil: number): void {
  clearTimeout(lease.expiry);
  lease.expiry = setTimeout(() => lose(lease, "expired"), validUntil - monotonicMs());
}

function lose({ key }: Lease, reason: "taken" | "expired"): void {
  forget(key);
  report({ kind: "lost", key, reason });
}

function forget(key: string): void {
  clearTimeout(leases.get(key)?.expiry);
  leases.delete(key);
}

function disconnect(): void {
  void client?.end().catch(() => undefined);
  client = undefined;
}

async function close(): Promise<never> {
  await client?.end().catch(() => undefined);
  // Ends this thread only.
  process.exit();
}

function report(message: FromHeartbeatThread): void {
  port.postMessage(message);
}
