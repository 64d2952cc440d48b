import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

/**
 * What docs/guides/back-up.md says about a restored backup. A copy of a database stands for its backup: both are the
 * database as it was at one moment, and a lease in it belongs to a runner that is no more.
 */

const databases: TestDatabase[] = [];
const runners: VitrinaProcess[] = [];
let main: TestDatabase;

beforeEach(async () => {
  main = await create();
  await main.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS
      SELECT n AS id, 'film ' || n AS title, '2020-01-01'::timestamptz + n * interval '1 second' AS modified
        FROM generate_series(1, 1000) n;
    CREATE INDEX ON content.film (modified, id); GRANT SELECT ON content.film TO vitrina_reader`);
});
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()));
  for (const database of databases.splice(0).reverse()) await database.drop();
});

async function create(options: { copyOf?: TestDatabase } = {}): Promise<TestDatabase> {
  const database = await createTestDatabase(inject("postgresUrl"), options);
  databases.push(database);
  return database;
}

interface Places {
  readonly meta: TestDatabase;
  readonly target: TestDatabase;
}

function startRunner({ meta, target }: Places, env: Record<string, string> = {}): VitrinaProcess {
  const urls = {
    META_DATABASE_URL: meta.urls.meta,
    READER_DATABASE_URL: main.urls.reader,
    WRITER_DATABASE_URL: target.urls.writer,
  };
  const runner = spawnVitrina(["runner"], { env: { ...urls, LEASE_SECONDS: "3", RUNNER_POLL_SECONDS: "1", ...env } });
  runners.push(runner);
  return runner;
}

function createPipeline(meta: TestDatabase, mode: string): Promise<Pipeline> {
  const config = {
    name: "films",
    source_query: "SELECT id, title, modified FROM content.film",
    target_table: "analytics.films",
    target_key: ["id"],
    create_target: true,
    mode,
    ...(mode === "incremental" && { incremental_key: "modified", incremental_id_key: "id" }),
    batch_size: 100,
  };
  return meta.openStore().pipelines.create(newPipelineSchema.parse(config), "test");
}

const runsOf = (meta: TestDatabase): Promise<Record<string, unknown>[]> =>
  meta.query(
    "SELECT status, trigger, error_code, rows_read::int FROM etl.etl_runs WHERE trigger <> 'follow_up' ORDER BY started_at DESC",
  );
const untilStatus = (meta: TestDatabase, wanted: string): Promise<unknown> =>
  until(
    `the pipeline is ${wanted}`,
    async () => (await meta.query("SELECT status FROM etl.etl_pipelines"))[0]?.["status"] === wanted,
  );
const request = (meta: TestDatabase): Promise<unknown> =>
  meta.query("UPDATE etl.etl_pipelines SET status = 'RUN_REQUESTED'");
const change = (): Promise<unknown> =>
  main.query("UPDATE content.film SET title = title || '!', modified = clock_timestamp() WHERE id % 10 = 0");

async function expectEqual(target: TestDatabase): Promise<void> {
  const rows = (database: TestDatabase, table: string) =>
    database.query(`SELECT t::text AS row FROM ${table} t ORDER BY id`);
  expect(await rows(target, "analytics.films")).toEqual(await rows(main, "content.film"));
}

it.each(["full", "incremental"])(
  "R4.7 a backup of one database, taken during a load in mode %s, goes on",
  async (mode) => {
    await createPipeline(main, mode);
    const killed = startRunner({ meta: main, target: main }, { VITRINA_FAULT: "batch_committed:4:kill" });
    await request(main);
    expect(await killed.exited).toBe("SIGKILL");
    const restored = await create({ copyOf: main });
    expect(await restored.query("SELECT status FROM etl.etl_pipelines")).toEqual([{ status: "RUNNING" }]);

    startRunner({ meta: restored, target: restored });
    await untilStatus(restored, "IDLE");
    const [last, lost] = await runsOf(restored);
    expect(lost).toMatchObject({ status: "FAILED", error_code: "RUNNER_LOST" });
    expect(last).toMatchObject({ status: "SUCCESS", trigger: "recovery" });
    expect(last?.["rows_read"]).toBeLessThan(1000);
    await expectEqual(restored);
  },
);

it("R4.7 a target elsewhere refuses an older meta-store, however often it is tried, until a person decides", async () => {
  const target = await create();
  await createPipeline(main, "incremental");
  const runner = startRunner({ meta: main, target });
  await request(main);
  await untilStatus(main, "IDLE");
  await runner.stop();
  const older = await create({ copyOf: main });
  const again = startRunner({ meta: main, target });
  for (let runs = 0; runs < 3; runs++) {
    await change();
    await request(main);
    await untilStatus(main, "IDLE");
  }
  await again.stop();
  // The last load of the newer meta-store stays unfinished, and its position beside the data.
  await change();
  const killed = startRunner({ meta: main, target }, { VITRINA_FAULT: "data_committed:1:kill" });
  await request(main);
  expect(await killed.exited).toBe("SIGKILL");
  // The cursor does not move with this change: it is seen only from this meta-store's own position.
  await main.query("UPDATE content.film SET title = 'new' WHERE id = 10");

  startRunner({ meta: older, target });
  // Each try has a higher epoch: without a person the sixth would come after those of the newer meta-store.
  for (let tries = 0; tries < 6; tries++) {
    await request(older);
    await untilStatus(older, "FAILED");
    expect((await runsOf(older))[0]).toMatchObject({ status: "FAILED", error_code: "TARGET_AHEAD" });
  }

  const store = older.openStore();
  await store.state.keep((await store.pipelines.get("films")).id);
  await request(older);
  await untilStatus(older, "IDLE");
  await expectEqual(target);
});
