import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { type Heartbeat, Heartbeats } from "../../src/data-plane/heartbeat.ts";
import { monotonicMs } from "../../src/data-plane/heartbeat-messages.ts";
import { leaseTiming } from "../../src/domain/lease.ts";
import { newPipelineSchema } from "../../src/domain/pipeline.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { holdLock } from "../support/hold-lock.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

const BUSY_RUNNER = fileURLToPath(new URL("../support/busy-runner-host.mjs", import.meta.url));
const LEASE_MS = 2000;
/** Longer where a process computes for all it is worth: the machine may be slow as well. */
const BUSY_LEASE_MS = 3000;
const timing = leaseTiming(LEASE_MS);
const log = recordingLog();
const runnerId = randomUUID();

let database: TestDatabase;
let store: MetaStore;
let heartbeats: Heartbeats | undefined;

beforeEach(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
});
afterEach(async () => {
  await heartbeats?.close();
  heartbeats = undefined;
  await database.drop();
});

async function waitingPipeline(): Promise<void> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  const made = await store.pipelines.create(newPipelineSchema.parse({ name, target_table: "analytics.t" }), "test");
  await store.requests.run(made.id, "api");
}

async function held(): Promise<{ claim: Claim; heartbeat: Heartbeat }> {
  await waitingPipeline();
  if (heartbeats === undefined) {
    heartbeats = new Heartbeats({ renewal: store.queue.leaseRenewal(), runnerId, timing, log });
    await heartbeats.start();
  }
  const heldSince = monotonicMs();
  const claim = (await store.queue.claimNext(runnerId, LEASE_MS)) as Claim;
  return { claim, heartbeat: heartbeats.hold(claim, heldSince, log) };
}

const leaseEnd = async ({ pipeline }: Claim): Promise<Date> => {
  const [row] = await database.query(
    "SELECT lease_expires_at AS at FROM etl.etl_runs WHERE pipeline_id = $1 AND status = 'RUNNING'",
    [pipeline.id],
  );
  return row?.["at"] as Date;
};

/** Beats that came after now: the end of the lease moves on with each of them. */
async function beats(claim: Claim, count: number): Promise<void> {
  for (let beat = 0; beat < count; beat++) {
    const before = await leaseEnd(claim);
    await until("the lease is renewed", async () => (await leaseEnd(claim)) > before);
  }
}

const heartbeatBackends = async (): Promise<number[]> =>
  (
    await database.query(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% heartbeat'",
    )
  ).map(({ pid }) => pid as number);

describe("the heartbeat of a runner whose event loop stands still", () => {
  interface Report {
    readonly step?: string;
    readonly turns?: number;
    readonly status?: string;
    readonly lost?: boolean;
  }

  async function busyRunner(order: object) {
    await waitingPipeline();
    const argument = JSON.stringify({ url: database.urls.meta, runnerId, leaseMs: BUSY_LEASE_MS, ...order });
    const child = spawn(process.execPath, [BUSY_RUNNER, argument], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    const reports = (): Report[] =>
      output
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Report);
    const reached = (step: string): Report | undefined => reports().find((report) => report.step === step);
    return { reached, exited: once(child, "close").then(([code]) => code as number) };
  }

  it("R4.7 keeps the lease for twice its length, and nobody rescues the pipeline", async () => {
    const { reached, exited } = await busyRunner({ busyMs: 2 * BUSY_LEASE_MS });
    await until("it computes", () => reached("busy") !== undefined);
    const [claimedLease] = await database.query("SELECT lease_expires_at AS ends FROM etl.etl_runs");
    const rescued: unknown[] = [];
    const free = await until("it is free again", async () => {
      rescued.push(...(await store.queue.rescueExpired(randomUUID())));
      return reached("free");
    });
    expect(rescued).toEqual([]);
    // The fault happened: the loop did not turn once, and without a beat the lease would have run out.
    expect(free).toMatchObject({ turns: 0 });
    expect(await database.query("SELECT clock_timestamp() > $1 AS over", [claimedLease?.["ends"]])).toEqual([
      { over: true },
    ]);
    expect(await exited).toBe(0);
    expect(reached("ended")).toMatchObject({ status: "IDLE", lost: false });
    expect(await database.query("SELECT status FROM etl.etl_runs")).toEqual([{ status: "SUCCESS" }]);
  });

  it("never keeps a process alive that has nothing else to do", async () => {
    const { exited } = await busyRunner({ busyMs: 0, leaveHeartbeatsRunning: true });
    expect(await exited).toBe(0);
  });
});

describe("the heartbeat", () => {
  it("renews every lease of the runner, and stops with the claim", async () => {
    const [first, second] = [await held(), await held()];
    await Promise.all([beats(first.claim, 3), beats(second.claim, 3)]);
    expect(await heartbeatBackends()).toHaveLength(1);
    first.heartbeat.stop();
    const rescued = await until(
      "the released one runs out",
      async () => (await store.queue.rescueExpired(randomUUID()))[0],
    );
    expect(rescued.id).toBe(first.claim.pipeline.id);
    expect(second.heartbeat.lost).toBe(false);
  });

  it("brings a pause request to the run, and interrupts whoever waits", async () => {
    const { claim, heartbeat } = await held();
    expect(heartbeat.status).toBe("RUNNING");
    await store.requests.pause(claim.pipeline.id);
    await until("it is interrupted", () => heartbeat.interruptSignal.aborted);
    expect(heartbeat).toMatchObject({ status: "PAUSE_REQUESTED", lost: false });
  });

  it("comes back after its connection was ended, and keeps the lease", async () => {
    const { claim, heartbeat } = await held();
    await beats(claim, 1);
    const [before] = await heartbeatBackends();
    expect(await database.query("SELECT pg_terminate_backend($1) AS ended", [before])).toEqual([{ ended: true }]);
    await until("it has another connection", async () => {
      const [pid] = await heartbeatBackends();
      return pid !== undefined && pid !== before;
    });
    await beats(claim, 2);
    expect(heartbeat.lost).toBe(false);
    expect(await store.queue.rescueExpired(randomUUID())).toEqual([]);
  });

  it("R4.7 reports a lease that was taken away, and only that one", async () => {
    const [taken, kept] = [await held(), await held()];
    await database.query("UPDATE etl.etl_pipelines SET lease_epoch = lease_epoch + 1 WHERE id = $1", [
      taken.claim.pipeline.id,
    ]);
    await until("it is reported", () => taken.heartbeat.lost);
    expect(taken.heartbeat.endSignal.aborted).toBe(true);
    expect(taken.heartbeat.interruptSignal.aborted).toBe(true);
    await beats(kept.claim, 1);
    expect(kept.heartbeat.lost).toBe(false);
  });

  it("R4.7 counts a lease as lost when no beat succeeds for its whole length", async () => {
    const { claim, heartbeat } = await held();
    await beats(claim, 1);
    const [{ name } = {}] = await database.query("SELECT current_database() AS name");
    await database.query(`REVOKE CONNECT ON DATABASE ${name} FROM PUBLIC`);
    const [pid] = await heartbeatBackends();
    await database.query("SELECT pg_terminate_backend($1)", [pid]);
    await until("it is reported", () => heartbeat.lost);
    expect(await heartbeatBackends()).toEqual([]);
  });

  it("renews the others while somebody holds the row of one, and that one as soon as it is free", async () => {
    const [locked, free] = [await held(), await held()];
    const unlock = await holdLock(database.url, "SELECT FROM etl.etl_runs WHERE id = $1 FOR UPDATE", [
      locked.claim.runId,
    ]);
    await beats(free.claim, 2);
    await unlock();
    expect(locked.heartbeat.lost).toBe(false);
    await beats(locked.claim, 1);
  });

  it("a thread that dies loses its leases at once, stops nobody, and is replaced with the next claim", async () => {
    const listening = recordingLog();
    const deaths = (): number => listening.entries.filter(({ level }) => level === "error").length;
    // No number of milliseconds: the thread fails when it wants to wait. No lease runs out in this test.
    const deadly = { ...timing, durationMs: 600_000, heartbeatMs: 10n as never };
    heartbeats = new Heartbeats({ renewal: store.queue.leaseRenewal(), runnerId, timing: deadly, log: listening });
    const first = await held();
    await until("its lease is lost", () => first.heartbeat.lost);
    expect(listening.has("the heartbeat thread failed")).toBe(true);
    const second = await held();
    await until("so is the next", () => second.heartbeat.lost);
    expect(deaths()).toBe(2);
  });
});
