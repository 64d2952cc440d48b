import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { Pipeline, PipelineId } from "../../src/domain/pipeline.ts";
import { laneOf } from "../../src/domain/run.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim, ScheduledPipeline } from "../../src/meta-store/ports/run-queue.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";
import {
  createClaimed,
  createPipeline,
  describeMetaStore,
  findSchedule,
  LEASE_MS,
  type MetaStoreHarness,
} from "./meta-store-contract.ts";

let database: TestDatabase;
let store: MetaStore;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
});
afterAll(() => database.drop());

/** One database for all tests: what a test has left goes with its pipelines. */
async function openPostgres(): Promise<MetaStoreHarness> {
  await database.forgetPipelines();
  return {
    store,
    // As the writer role would.
    commitBatch(claim, batch) {
      const session = {
        query: async (text: string, values?: unknown[]) => ({
          rows: await database.query(text, values),
          rowCount: null,
        }),
      };
      return store.batchCommit(claim).recordIn(session, batch);
    },
    expireLease: (id) =>
      database.query(
        "UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() - interval '1 ms' WHERE pipeline_id = $1 AND status = 'RUNNING'",
        [id],
      ),
    planRun: (id, seconds) => change(id, "next_run_at = clock_timestamp() + make_interval(secs => $2)", seconds),
    setStatus: (id, status) => change(id, "status = $2", status),
  };
}

const change = (id: PipelineId, assignment: string, ...values: unknown[]): Promise<unknown> =>
  database.query(`UPDATE etl.etl_pipelines SET ${assignment} WHERE id = $1`, [id, ...values]);

describeMetaStore("postgres", openPostgres);

/** What only this implementation has: its rows, locks, notifications and plans. */
let harness: MetaStoreHarness;
beforeEach(async () => {
  harness = await openPostgres();
});
const create = (more?: object): Promise<Pipeline> => createPipeline(store, more);
const claimed = (more?: object, runner?: string): Promise<Claim> => createClaimed(store, more, runner);

describe("configuration", () => {
  it("R2.5 keeps every change as a version, and none for a change that changes nothing", async () => {
    const made = await create();
    const changed = await store.pipelines.update(made.id, { batch_size: 7 }, { author: "ann" });
    expect(changed).toMatchObject({ batch_size: 7, config_version: 2 });
    expect(await store.pipelines.update(made.id, { batch_size: 7 }, { author: "bob" })).toMatchObject({
      config_version: 2,
    });
    const versions = await database.query(
      "SELECT version, author, config->>'batch_size' AS batch_size FROM etl.etl_pipeline_versions ORDER BY version",
    );
    expect(versions).toEqual([
      { version: 1, author: "test", batch_size: "1000" },
      { version: 2, author: "ann", batch_size: "7" },
    ]);
  });

  it("deletes a pipeline with its history, but not while a runner holds it", async () => {
    const claim = await claimed();
    await expect(store.pipelines.delete(claim.pipeline.id)).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
    await store.queue.finishRun(claim, { kind: "succeeded" });
    await store.pipelines.delete(claim.pipeline.id);
    expect(await database.query("SELECT id FROM etl.etl_runs")).toEqual([]);
  });
});

describe("requests", () => {
  it("R3.3 run is idempotent, and keeps its place in the queue", async () => {
    const { id } = await create();
    expect(await store.requests.run(id, "api")).toMatchObject({ status: "RUN_REQUESTED" });
    const place = () => database.query("SELECT run_requested_at, run_trigger FROM etl.etl_pipelines");
    const first = await place();
    expect(await store.requests.run(id, "schedule")).toMatchObject({ status: "RUN_REQUESTED" });
    expect(await place()).toEqual(first);
  });

  it("wakes a listener at once, also for a row changed by hand", async () => {
    let woken = 0;
    const subscription = await store.queue.onWork(() => {
      woken += 1;
    });
    const { id } = await create();
    const before = woken;
    await store.requests.run(id, "api");
    await until("the listener is woken", () => woken > before);
    const { id: second } = await create();
    const beforeByHand = woken;
    await database.query("UPDATE etl.etl_pipelines SET status = 'RUN_REQUESTED' WHERE id = $1", [second]);
    await until("the listener is woken by hand", () => woken > beforeByHand);
    await subscription.close();
  });

  it("listens again after its connection was ended", async () => {
    let woken = 0;
    const subscription = await store.queue.onWork(() => {
      woken += 1;
    });
    const ended = await database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    expect(ended).toHaveLength(1);
    const before = woken;
    await until("it reconnected", () => woken > before);
    await subscription.close();
  });
});

describe("claims", () => {
  it("a pause that commits while the run is being finished is still a pause", async () => {
    const claim = await claimed();
    const other = new pg.Client({ connectionString: database.url });
    await other.connect();
    await other.query("BEGIN");
    await other.query("UPDATE etl.etl_pipelines SET status = 'PAUSE_REQUESTED'");
    const finished = store.queue.finishRun(claim, { kind: "succeeded" });
    await until("the end of the run waits", async () => {
      const waiting = await database.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
    await other.query("COMMIT");
    await other.end();
    expect(await finished).toBe("PAUSED");
  });
});

describe("a lease renewed by another thread", () => {
  const renew = async (claims: Claim[], owner: string) => {
    const { statement } = store.queue.leaseRenewal();
    const values = [
      claims.map(({ pipeline }) => pipeline.id),
      claims.map(({ kind }) => laneOf(kind)),
      claims.map(({ epoch }) => epoch),
      owner,
      LEASE_MS,
    ];
    return (await database.query(statement, values)) as { id: string; status: string; renewed: boolean }[];
  };

  it("renews all leases of an owner at once, and returns none that is lost", async () => {
    const owner = randomUUID();
    const [first, second, taken] = [await claimed({}, owner), await claimed({}, owner), await claimed({}, owner)];
    const foreign = await claimed();
    await store.requests.pause(second.pipeline.id);
    await harness.expireLease(first.pipeline.id);
    const answers = await renew([first, second, { ...taken, epoch: taken.epoch - 1 }, foreign], owner);
    expect(new Map(answers.map(({ id, status, renewed }) => [id, { status, renewed }]))).toEqual(
      new Map([
        [first.pipeline.id, { status: "RUNNING", renewed: true }],
        [second.pipeline.id, { status: "PAUSE_REQUESTED", renewed: true }],
      ]),
    );
    expect(await store.queue.rescueExpired(randomUUID())).toEqual([]);
  });

  it("passes over a row that somebody holds, so that the other leases do not wait for it", async () => {
    const owner = randomUUID();
    const [locked, free] = [await claimed({}, owner), await claimed({}, owner)];
    const unlock = await holdLock(database.url, "SELECT FROM etl.etl_runs WHERE id = $1 FOR UPDATE", [locked.runId]);
    const answers = await renew([locked, free], owner);
    await unlock();
    expect(new Map(answers.map(({ id, renewed }) => [id, renewed]))).toEqual(
      new Map([
        [locked.pipeline.id, false],
        [free.pipeline.id, true],
      ]),
    );
  });
});

describe("schedules", () => {
  /** Created, planned, and due a moment ago. */
  async function due(more: object = {}): Promise<ScheduledPipeline> {
    const made = await create({ schedule_interval: "15m", ...more });
    await harness.planRun(made.id, -1);
    return findSchedule(store, made.id);
  }

  const muchLater = { kind: "next", nextRunAt: new Date("2100-01-01T00:00:00.123Z") } as const;

  it("R4.8 a changed schedule, or one switched off and on, is planned again; other changes leave the plan", async () => {
    const { id } = await due();
    const unplanned = { next_run_at: null };
    expect(await store.pipelines.update(id, { description: "d" }, { author: "t" })).toMatchObject({
      next_run_at: expect.any(Date),
    });
    expect(await store.pipelines.update(id, { schedule_interval: "1h" }, { author: "t" })).toMatchObject(unplanned);
    await harness.planRun(id, 3600);
    expect(await store.pipelines.update(id, { enabled: false }, { author: "t" })).toMatchObject(unplanned);
    expect((await store.schedules.upcoming(10, null)).schedules).toEqual([]);
    expect(await store.pipelines.update(id, { enabled: true }, { author: "t" })).toMatchObject(unplanned);
    await harness.planRun(id, 3600);
    await database.query("UPDATE etl.etl_pipelines SET schedule_interval = NULL");
    expect(await store.pipelines.get(id)).toMatchObject(unplanned);
  });

  it("does not wait for a row that somebody holds", async () => {
    const schedule = await due();
    const unlock = await holdLock(database.url, "SELECT FROM etl.etl_pipelines FOR UPDATE");
    expect(await store.schedules.advance(schedule, muchLater)).toBe("taken");
    await unlock();
    expect(await store.schedules.advance(schedule, muchLater)).toBe("fired");
  });
});

describe("the database itself", () => {
  it("refuses states that the rules do not allow", async () => {
    const { id } = await create();
    const change = (assignment: string): Promise<unknown> =>
      database.query(`UPDATE etl.etl_pipelines SET ${assignment} WHERE id = $1`, [id]);
    await expect(change("status = 'RUNNING'")).rejects.toThrow("held_means_run");
    await expect(change("status = 'RUNNING', run_id = gen_random_uuid()")).rejects.toThrow("run_id_fkey");
    await expect(change("run_kind = 'reconcile'")).rejects.toThrow("run_kind_check");
    await expect(change("mode = 'incremental'")).rejects.toThrow("incremental_has_a_key");
    await expect(change("status = 'SOMETHING'")).rejects.toThrow("status_check");
    await expect(change("batch_size = 0")).rejects.toThrow("batch_size_check");
    await expect(change("next_run_at = now()")).rejects.toThrow("planned_means_scheduled");
    const claim = await claimed();
    const spoil = (assignment: string): Promise<unknown> =>
      database.query(`UPDATE etl.etl_runs SET ${assignment} WHERE id = $1`, [claim.runId]);
    await expect(spoil("rows_read = 5")).rejects.toThrow("rows_balance");
    await expect(spoil("lease_expires_at = NULL")).rejects.toThrow("running_means_leased");
    await expect(spoil("status = 'REQUESTED', lease_expires_at = NULL")).rejects.toThrow(
      "only_reconciles_are_asked_for_singly",
    );
    await expect(spoil("verdict = 'MATCH'")).rejects.toThrow("judged_by_a_report");
    await expect(spoil("status = 'SUCCESS'")).rejects.toThrow("finished_when_ended");
    await expect(spoil("status = 'FAILED', finished_at = now()")).rejects.toThrow("failed_says_why");
  });

  it("claims through the index of waiting pipelines", async () => {
    await database.query(
      `INSERT INTO etl.etl_pipelines (name, target_table) SELECT 'idle_' || n, 'analytics.t' FROM generate_series(1, 5000) n`,
    );
    await database.query("ANALYZE etl.etl_pipelines");
    const plan = await database.query(
      `EXPLAIN SELECT id FROM etl.etl_pipelines WHERE enabled AND status = 'RUN_REQUESTED'
        ORDER BY run_requested_at, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`,
    );
    expect(JSON.stringify(plan)).toContain("etl_pipelines_waiting");
  });

  it("looks for due pipelines through the index of schedules", async () => {
    await database.query(
      `INSERT INTO etl.etl_pipelines (name, target_table, schedule_interval, next_run_at)
       SELECT 'p_' || n, 'analytics.t', '15m', now() + n * interval '1 s' FROM generate_series(1, 5000) n`,
    );
    await database.query("ANALYZE etl.etl_pipelines");
    const plan = await database.query(
      `EXPLAIN SELECT id FROM etl.etl_pipelines
        WHERE enabled AND schedule_interval IS NOT NULL AND schedule_error IS NULL
        ORDER BY next_run_at NULLS FIRST, id LIMIT 100`,
    );
    expect(JSON.stringify(plan)).toContain("etl_pipelines_scheduled");
  });
});
