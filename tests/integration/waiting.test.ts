import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type RecordingLog, recordingLog } from "../support/recording-log.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** Trouble that passes is waited for, by any runner; what a person must put right is not. */

let source: TestDatabase;
let proxy: TcpProxy;
let database: TestDatabase;
let store: MetaStore;
let log: RecordingLog;
let stopRunner: () => Promise<void> = async () => undefined;

/** So short that a test sees many attempts, or so long that it sees only those that somebody asks for. */
const SHORT_PAUSES = { RETRY_BACKOFF_SECONDS: "0", RETRY_LONGEST_PAUSE_SECONDS: "1" };
const LONG_PAUSES = { RETRY_BACKOFF_SECONDS: "3600", RETRY_LONGEST_PAUSE_SECONDS: "3600" };

beforeEach(async () => {
  source = await createTestDatabase(inject("postgresUrl"));
  await source.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, 300) n;
    GRANT SELECT ON content.film TO vitrina_reader`);
  proxy = await startTcpProxy(source.url);
});
afterEach(async () => {
  await stopRunner();
  stopRunner = async () => undefined;
  await proxy.close();
  await database.drop();
  await source.drop();
});

async function start(settings: Record<string, string>): Promise<void> {
  database = await createTestDatabase(inject("postgresUrl"), {
    // Nobody looks by himself for an hour: a waiting pipeline is taken up because its time has come.
    settings: {
      RUNNER_POLL_SECONDS: "3600",
      LEASE_SECONDS: "3",
      SOURCE_FILMS_URL: proxy.through(source.urls.reader),
      ...settings,
    },
  });
  store = database.openStore();
  log = recordingLog();
  const runner = await startRunner(database.settings, database.urls, log);
  let stopped: Promise<void> | undefined;
  stopRunner = () => (stopped ??= runner.stop());
}

async function create(more: object = {}): Promise<Pipeline> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  const config = {
    name,
    source_connection: "films",
    source_query: "SELECT id, title FROM content.film",
    target_table: `analytics.${name}`,
    target_key: ["id"],
    create_target: true,
    batch_size: 100,
    ...more,
  };
  return store.pipelines.create(newPipelineSchema.parse(config), "test");
}

const runsOf = async ({ id }: Pipeline) => (await askedRuns(store, id)).reverse();

const waits = (pipeline: Pipeline) =>
  until("it waits", async () => (await store.pipelines.get(pipeline.id)).waiting ?? undefined);

async function settled({ id }: Pipeline, status: string): Promise<void> {
  await until(`the pipeline is ${status}`, async () => (await store.pipelines.get(id)).status === status);
}

/** More attempts than there were before anybody waited for anything. */
async function triedOften(pipeline: Pipeline): Promise<void> {
  await until("it was tried five times", async () => (await runsOf(pipeline)).length >= 5);
}

async function requireWhole(pipeline: Pipeline): Promise<void> {
  await settled(pipeline, "IDLE");
  const runs = await runsOf(pipeline);
  expect(runs.map(({ attempt }) => attempt)).toEqual(runs.map((_, index) => index + 1));
  expect(new Set(runs.map(({ run_request }) => run_request)).size).toBe(1);
  expect(new Set(runs.map(({ trigger }) => trigger)).size).toBe(1);
  expect(runs.at(-1)).toMatchObject({ status: "SUCCESS" });
  expect(await database.query(`SELECT count(*)::int AS rows FROM ${pipeline.target_table}`)).toEqual([{ rows: 300 }]);
}

describe("R4.6 trouble that passes", () => {
  it("a source that refuses connections is waited for, beyond the few attempts, and then read", async () => {
    await start(SHORT_PAUSES);
    const pipeline = await create();
    await proxy.refuse();
    await store.requests.run(pipeline.id, "api");
    expect(await waits(pipeline)).toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      reason: expect.stringMatching(/connect to the source.*ECONNREFUSED/),
    });
    await triedOften(pipeline);
    await proxy.accept();
    await requireWhole(pipeline);
    expect(log.has("attempt failed; waiting until the problem passes")).toBe(true);
    expect((await store.pipelines.get(pipeline.id)).waiting).toBeNull();
  });

  it("connections that are used up are waited for", async () => {
    await start(SHORT_PAUSES);
    const pipeline = await create();
    const name = new URL(source.url).pathname.slice(1);
    await source.query(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
    await store.requests.run(pipeline.id, "api");
    expect(await waits(pipeline)).toMatchObject({ code: "TOO_MANY_CONNECTIONS" });
    await triedOften(pipeline);
    await source.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    await requireWhole(pipeline);
  });

  it("a server that says its disk is full is waited for", async () => {
    await start(SHORT_PAUSES);
    const pipeline = await create({ create_target: false });
    await database.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text);
      GRANT ALL ON ${pipeline.target_table} TO vitrina_writer;
      CREATE FUNCTION analytics.full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON ${pipeline.target_table} EXECUTE FUNCTION analytics.full_disk()`);
    await store.requests.run(pipeline.id, "api");
    expect(await waits(pipeline)).toMatchObject({ code: "DISK_FULL", reason: expect.stringMatching(/Make room/) });
    await triedOften(pipeline);
    await database.query(`DROP TRIGGER full_disk ON ${pipeline.target_table}`);
    await requireWhole(pipeline);
  });

  it("leaves the place of its runner to others meanwhile, and survives it", async () => {
    await start({ ...LONG_PAUSES, RUNNER_CONCURRENCY: "1" });
    await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
      CREATE TABLE content.one AS SELECT 1 AS id; GRANT SELECT ON content.one TO vitrina_reader`);
    const pipeline = await create();
    const other = await create({ source_connection: "main", source_query: "SELECT id FROM content.one" });
    await proxy.refuse();
    await store.requests.run(pipeline.id, "schedule");
    await waits(pipeline);
    await store.requests.run(other.id, "api");
    await settled(other, "IDLE");
    await stopRunner();
    await proxy.accept();
    await database.query("UPDATE etl.etl_pipelines SET not_before = clock_timestamp() WHERE not_before IS NOT NULL");
    const next = await startRunner(database.settings, database.urls, log);
    stopRunner = () => next.stop();
    await requireWhole(pipeline);
  });
});

describe("a pipeline that waits", () => {
  async function waitingForEver(more: object = {}): Promise<Pipeline> {
    await start(LONG_PAUSES);
    const pipeline = await create(more);
    await proxy.refuse();
    await store.requests.run(pipeline.id, "api");
    await waits(pipeline);
    return pipeline;
  }

  it("R4.3 is paused at once", async () => {
    const pipeline = await waitingForEver();
    expect(await store.requests.pause(pipeline.id)).toMatchObject({ status: "PAUSED", waiting: null });
    expect(await runsOf(pipeline)).toMatchObject([{ status: "FAILED", error_code: "DATABASE_UNAVAILABLE" }]);
  });

  it("is withdrawn at once by a cancel, and its schedule goes on", async () => {
    const pipeline = await waitingForEver();
    expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "IDLE", waiting: null });
    expect(await runsOf(pipeline)).toMatchObject([{ status: "FAILED", error_code: "DATABASE_UNAVAILABLE" }]);
    await proxy.accept();
    await store.pipelines.update(pipeline.id, { schedule_interval: "1s" }, { author: "test" });
    await until("its schedule fires", async () => (await runsOf(pipeline)).at(-1)?.status === "SUCCESS");
  });

  it("is tried at once when somebody requests a run", async () => {
    const pipeline = await waitingForEver();
    await proxy.accept();
    expect(await store.requests.run(pipeline.id, "api")).toMatchObject({ status: "RUN_REQUESTED", waiting: null });
    await requireWhole(pipeline);
  });

  it("is told to a runner if its time has come since it looked before, when there was nothing to claim yet", async () => {
    const { id } = await waitingForEver();
    const looked = await store.schedules.upcoming(1, null);
    expect(looked.nextAttemptAt).toEqual((await store.pipelines.get(id)).waiting?.until);
    await stopRunner();
    await database.query(
      "UPDATE etl.etl_pipelines SET not_before = clock_timestamp() + interval '2 ms' WHERE id = $1",
      [id],
    );
    const overdue = await until("its time has come", async () => {
      const look = await store.schedules.upcoming(1, looked.now);
      expect(look.nextAttemptAt).not.toBeNull();
      return Number(look.nextAttemptAt) < Number(look.now) && look;
    });
    // Once is enough: if it is not claimed then, no place is free for it.
    expect((await store.schedules.upcoming(1, overdue.now)).nextAttemptAt).toBeNull();
  });

  it("is not taken before its time, by nobody", async () => {
    const pipeline = await waitingForEver();
    expect(await store.queue.claimNext(randomUUID(), 3000)).toBeUndefined();
    expect(await store.monitoring.survey(10)).toMatchObject({ waiting: 0, heldUp: 1 });
    expect((await store.pipelines.get(pipeline.id)).status).toBe("RUN_REQUESTED");
  });
});

describe("R4.8 after the limit", () => {
  it("it fails, and its schedule tries again by itself", async () => {
    await start(SHORT_PAUSES);
    const pipeline = await create({ retry_for_seconds: 1, schedule_interval: "1s" });
    await proxy.refuse();
    await settled(pipeline, "FAILED");
    await proxy.accept();
    await settled(pipeline, "IDLE");
    const runs = await runsOf(pipeline);
    expect(runs.some(({ error_code }) => error_code === "DATABASE_UNAVAILABLE")).toBe(true);
    expect(new Set(runs.map(({ run_request }) => run_request)).size).toBeGreaterThan(1);
  });

  it("what a person must put right waits for a person, with a schedule, too", async () => {
    await start(SHORT_PAUSES);
    const pipeline = await create({ schedule_interval: "1s", source_query: "SELECT nonsense FROM content.film" });
    await settled(pipeline, "FAILED");
    const [{ next_run_at: due } = {}] = await database.query("SELECT next_run_at FROM etl.etl_pipelines");
    await until("its due time came and went", async () => {
      const [row] = await database.query("SELECT next_run_at > $1 AS passed FROM etl.etl_pipelines", [due]);
      return row?.["passed"] === true;
    });
    expect(await runsOf(pipeline)).toHaveLength(1);
  });
});

it("a batch that was committed ends the problem before it: the limit counts from zero", async () => {
  await start(SHORT_PAUSES);
  const pipeline = await create({ mode: "incremental", incremental_key: "id", batch_size: 100 });
  await proxy.refuse();
  await store.requests.run(pipeline.id, "api");
  await waits(pipeline);
  await database.query("UPDATE etl.etl_pipelines SET troubled_since = clock_timestamp() - interval '59 minutes'");
  // The first batch is written, the second is refused for want of space.
  await database.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text);
    GRANT ALL ON ${pipeline.target_table} TO vitrina_writer;
    CREATE FUNCTION analytics.full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON ${pipeline.target_table} FOR EACH ROW WHEN (NEW.id > 100)
      EXECUTE FUNCTION analytics.full_disk()`);
  await proxy.accept();
  const waiting = await until("it waits for space", async () => {
    const found = (await store.pipelines.get(pipeline.id)).waiting;
    return found?.code === "DISK_FULL" ? found : undefined;
  });
  const [{ young } = {}] = await database.query("SELECT clock_timestamp() - $1 < interval '50 minutes' AS young", [
    waiting.since,
  ]);
  expect(young).toBe(true);
  await database.query(`DROP TRIGGER full_disk ON ${pipeline.target_table}`);
  await settled(pipeline, "IDLE");
});
