import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { holdLock } from "../support/hold-lock.ts";
import { type RecordingLog, recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

let database: TestDatabase;
let store: MetaStore;
let log: RecordingLog;
let stopRunner: () => Promise<void> = async () => undefined;
let unlock: () => Promise<void> = async () => undefined;

beforeEach(async () => {
  // A short lease has short timeouts: a locked target soon fails the attempt that waits for it.
  database = await createTestDatabase(inject("postgresUrl"), { settings: { LEASE_SECONDS: "3" } });
  await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS SELECT n AS id, 'old ' || n AS title FROM generate_series(1, 1000) n;
    GRANT SELECT ON content.film TO vitrina_reader`);
  store = database.openStore();
  log = recordingLog();
  const runner = await startRunner(database.settings, database.urls, log);
  let stopped: Promise<void> | undefined;
  stopRunner = () => (stopped ??= runner.stop());
});
afterEach(async () => {
  await unlock();
  unlock = async () => undefined;
  await stopRunner();
  await database.drop();
});

async function create(more: object = {}): Promise<Pipeline> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  return store.pipelines.create(
    newPipelineSchema.parse({
      name,
      source_query: "SELECT id, title FROM content.film",
      target_table: `analytics.${name}`,
      target_key: ["id"],
      create_target: true,
      batch_size: 100,
      retry_for_seconds: 0,
      ...more,
    }),
    "test",
  );
}

/** Loaded once, changed in the source since, and its target locked against writers: the next run cannot succeed. */
async function stuckPipeline(): Promise<Pipeline> {
  const pipeline = await create();
  await store.requests.run(pipeline.id, "api");
  await settled(pipeline, "IDLE");
  await database.query("DELETE FROM etl.etl_runs");
  await database.query("UPDATE content.film SET title = 'new ' || id");
  unlock = await holdLock(database.url, `LOCK TABLE ${pipeline.target_table} IN EXCLUSIVE MODE`);
  await store.requests.run(pipeline.id, "api");
  return pipeline;
}

interface RunRow {
  readonly attempt: number;
  readonly status: string;
  readonly trigger: string;
  readonly error_code: string | null;
  readonly lease_epoch: string;
}

const runs = async (): Promise<RunRow[]> =>
  (await database.query(
    "SELECT attempt, status, trigger, error_code, lease_epoch FROM etl.etl_runs WHERE trigger <> 'follow_up' ORDER BY started_at",
  )) as unknown as RunRow[];

const failedAttempts = async (): Promise<number> => (await runs()).filter(({ status }) => status === "FAILED").length;

async function settled({ id }: Pipeline, status: string): Promise<void> {
  await until(`the pipeline is ${status}`, async () => {
    const [row] = await database.query("SELECT status FROM etl.etl_pipelines WHERE id = $1", [id]);
    return row?.["status"] === status;
  });
}

const rowsOf = (table: string): Promise<unknown[]> => database.query(`SELECT id, title FROM ${table} ORDER BY id`);

/** Sessions that read the source or write the target, whatever way the rows take. */
const MOVES_DATA = "usename IN ('vitrina_reader', 'vitrina_writer', 'vitrina_loader')";

async function untilWriterWaits(): Promise<void> {
  await until("the run waits for the lock", async () => {
    const waiting = await database.query(
      `SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND ${MOVES_DATA} AND wait_event_type = 'Lock'`,
    );
    return waiting.length > 0;
  });
}

const endBackends = async (condition: string): Promise<number> =>
  (
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`,
    )
  ).length;

describe("R4.6 retry", () => {
  it("R6.1 tries three times, each attempt with a run of its own, and ends with the same data", async () => {
    const pipeline = await stuckPipeline();
    await until("two attempts failed", async () => (await failedAttempts()) === 2);
    await unlock();
    await settled(pipeline, "IDLE");
    const history = await runs();
    expect(history).toMatchObject([
      { attempt: 1, status: "FAILED", trigger: "api", error_code: "DATABASE_BUSY" },
      { attempt: 2, status: "FAILED", trigger: "api", error_code: "DATABASE_BUSY" },
      { attempt: 3, status: "SUCCESS", trigger: "api", error_code: null },
    ]);
    expect(new Set(history.map(({ lease_epoch }) => lease_epoch)).size).toBe(1);
    expect(await rowsOf(pipeline.target_table)).toEqual(await rowsOf("content.film"));
  });

  it("R6.2 fails after the last attempt", async () => {
    const pipeline = await stuckPipeline();
    await settled(pipeline, "FAILED");
    expect(await runs()).toMatchObject([1, 2, 3].map((attempt) => ({ attempt, status: "FAILED" })));
    const [run] = (await store.runs.list(pipeline.id, { limit: 1 })).items;
    expect(run?.error).toMatch(/"analytics"."p_\w+" is locked by process \d+ \(user \w+.*, ExclusiveLock.*\)\./);
  });

  it("R6.2 waits for a source that somebody locks, and says who", async () => {
    const pipeline = await create({ retry_for_seconds: 600 });
    unlock = await holdLock(database.url, "LOCK TABLE content.film IN ACCESS EXCLUSIVE MODE");
    await store.requests.run(pipeline.id, "api");
    await until("one attempt failed", async () => (await failedAttempts()) === 1);
    const [run] = (await store.runs.list(pipeline.id, { limit: 1 })).items;
    expect(run).toMatchObject({ status: "FAILED", error_code: "DATABASE_BUSY" });
    expect(run?.error).toMatch(/"content"."film" is locked by process \d+ \(user \w+.*, AccessExclusiveLock.*\)\./);
    await unlock();
    await settled(pipeline, "IDLE");
    expect(await rowsOf(pipeline.target_table)).toEqual(await rowsOf("content.film"));
  });

  it("goes on after the connections of a run were ended, as long as the meta-store answers", async () => {
    const pipeline = await stuckPipeline();
    await untilWriterWaits();
    expect(await endBackends(MOVES_DATA)).toBeGreaterThan(0);
    await unlock();
    await settled(pipeline, "IDLE");
    expect(await runs()).toMatchObject([
      { attempt: 1, status: "FAILED", error_code: "DATABASE_UNAVAILABLE" },
      { attempt: 2, status: "SUCCESS" },
    ]);
    expect(await rowsOf(pipeline.target_table)).toEqual(await rowsOf("content.film"));
  });

  it.each([
    ["bad SQL", { source_query: "SELECT nonsense FROM content.film" }, "SOURCE_QUERY_FAILED"],
    ["a missing target", { create_target: false }, "TARGET_MISSING"],
  ])("fails at once where waiting would not help: %s", async (_, config, error_code) => {
    const pipeline = await create(config);
    await store.requests.run(pipeline.id, "api");
    await settled(pipeline, "FAILED");
    expect(await runs()).toMatchObject([{ attempt: 1, status: "FAILED", error_code }]);
  });
});

describe("R4.7 a statement that takes longer than the lease", () => {
  /** Of 3 s; what a statement was given of it once is less still. */
  const LEASE_MS = 3000;

  it("thinks inside the database, and loads in one attempt", async () => {
    const thought = (steps: number): string =>
      `(WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < ${steps}) SELECT count(*) FROM r)`;
    // As many as take twice the time here that is asked for below.
    const begun = performance.now();
    await database.query(`SELECT ${thought(1_000_000)}`);
    const steps = Math.ceil((1_000_000 * 1.2 * LEASE_MS) / (performance.now() - begun));
    const pipeline = await create({
      source_query: `SELECT f.id, ${thought(steps)} AS thought FROM content.film f`,
      batch_size: 2000,
    });
    await database.query("ALTER TABLE content.film ADD PRIMARY KEY (id); ANALYZE content.film");
    await store.requests.run(pipeline.id, "api");
    await settled(pipeline, "IDLE");
    const [run, ...others] = (await store.runs.list(pipeline.id, { limit: 5 })).items;
    expect(others).toEqual([]);
    expect(run).toMatchObject({ status: "SUCCESS", data_path: "push-down", rows_written: 1000 });
    expect(run?.write_ms).toBeGreaterThan(0.6 * LEASE_MS);
  });

  it("writes for long, and loads in one attempt", async () => {
    const pipeline = await create({ create_target: false, batch_size: 2000 });
    await database.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text);
      GRANT ALL ON ${pipeline.target_table} TO vitrina_writer;
      CREATE FUNCTION analytics.slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(${(1.2 * LEASE_MS) / 1000}); RETURN NULL; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON ${pipeline.target_table} EXECUTE FUNCTION analytics.slow()`);
    await store.requests.run(pipeline.id, "api");
    await settled(pipeline, "IDLE");
    expect(await runs()).toMatchObject([{ attempt: 1, status: "SUCCESS" }]);
    expect(await rowsOf(pipeline.target_table)).toEqual(await rowsOf("content.film"));
  });
});

describe("R4.6 what a person must put right", () => {
  it("is told at once where a query needs more temporary space than its role may take", async () => {
    const [{ name } = {}] = await database.query("SELECT current_database() AS name");
    await database.query(`ALTER ROLE vitrina_reader IN DATABASE ${name} SET temp_file_limit = '64kB'`);
    await database.query(`ALTER ROLE vitrina_reader IN DATABASE ${name} SET work_mem = '64kB'`);
    const source_query = "SELECT n AS id FROM generate_series(1, 200000) n ORDER BY md5(n::text)";
    const pipeline = await create({ source_query });
    await store.requests.run(pipeline.id, "api");
    await settled(pipeline, "FAILED");
    expect(await runs()).toMatchObject([{ attempt: 1, status: "FAILED", error_code: "TEMP_FILE_LIMIT" }]);
    const [run] = await askedRuns(store, pipeline.id);
    expect(run?.error).toMatch(/SQLSTATE 53400.*Raise temp_file_limit/);
  });
});

describe("waiting for the next attempt", () => {
  it("ends when a pause is asked for", async () => {
    const pipeline = await stuckPipeline();
    await until("an attempt failed", async () => (await failedAttempts()) === 1);
    await store.requests.pause(pipeline.id);
    await settled(pipeline, "PAUSED");
    expect((await runs()).at(-1)).toMatchObject({ status: "PAUSED" });
  });

  it("ends when the runner stops: the pipeline is handed back", async () => {
    const pipeline = await stuckPipeline();
    await until("an attempt failed", async () => (await failedAttempts()) === 1);
    await stopRunner();
    await settled(pipeline, "RUN_REQUESTED");
    expect((await runs()).at(-1)).toMatchObject({ status: "HANDED_BACK" });
    expect(log.has("runner stopped")).toBe(true);
  });

  it("ends when the lease is lost, and the run leaves no trace", async () => {
    const pipeline = await stuckPipeline();
    await until("an attempt failed", async () => (await failedAttempts()) === 1);
    const other = randomUUID();
    await database.query(
      "UPDATE etl.etl_runs SET runner_id = $1, lease_epoch = lease_epoch + 1 WHERE pipeline_id = $2 AND status = 'RUNNING'",
      [other, pipeline.id],
    );
    const before = await runs();
    await until("the run is dropped", () => log.has("run dropped"));
    expect((await runs()).slice(0, before.length).map(({ status }) => status)).toEqual(before.map((run) => run.status));
    expect(await database.query("SELECT status FROM etl.etl_pipelines")).toEqual([{ status: "RUNNING" }]);
    expect(await database.query("SELECT status FROM etl.etl_runs WHERE runner_id = $1", [other])).toEqual([
      { status: "RUNNING" },
    ]);
  });
});

it("R4.6 a run whose meta-store is away is left to recovery, and the runner reconnects by itself", async () => {
  const pipeline = await stuckPipeline();
  await untilWriterWaits();
  const [{ name } = {}] = await database.query("SELECT current_database() AS name");
  await database.query(`REVOKE CONNECT ON DATABASE ${name} FROM PUBLIC`);
  expect(await endBackends("usename LIKE 'vitrina\\_%'")).toBeGreaterThan(2);
  await until("the run is left", () => log.has("run left to recovery"));
  await until("the runner noticed", () => log.has("the meta-store did not answer; trying again"));
  await unlock();
  await database.query(`GRANT CONNECT ON DATABASE ${name} TO PUBLIC`);
  await settled(pipeline, "IDLE");
  expect(await runs()).toMatchObject([
    { attempt: 1, status: "FAILED", trigger: "api", error_code: "RUNNER_CUT_OFF" },
    { attempt: 1, status: "SUCCESS", trigger: "recovery" },
  ]);
  expect(await rowsOf(pipeline.target_table)).toEqual(await rowsOf("content.film"));
});
