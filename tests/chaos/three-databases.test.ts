import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline, type PipelineId } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";
import { spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

/** Source, target and meta-store are three databases: nothing can commit together but the target and its checkpoint. */

let meta: TestDatabase;
let source: TestDatabase;
let target: TestDatabase;
let store: MetaStore;
const runners: VitrinaProcess[] = [];

beforeEach(async () => {
  [meta, source, target] = (await Promise.all([1, 2, 3].map(() => createTestDatabase(inject("postgresUrl"))))) as [
    TestDatabase,
    TestDatabase,
    TestDatabase,
  ];
  await source.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS
      SELECT n AS id, 'film ' || n AS title, '2020-01-01'::timestamptz + n * interval '1 second' AS modified
        FROM generate_series(1, 3000) n;
    CREATE INDEX ON content.film (modified, id); GRANT SELECT ON content.film TO vitrina_reader`);
  store = meta.openStore();
});
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()));
  await Promise.all([meta, source, target].map((database) => database.drop()));
});

function startRunner(env: Record<string, string> = {}): VitrinaProcess {
  const runner = spawnVitrina(["runner"], {
    env: {
      META_DATABASE_URL: meta.urls.meta,
      READER_DATABASE_URL: meta.urls.reader,
      WRITER_DATABASE_URL: target.urls.writer,
      SOURCE_FILMS_URL: source.urls.reader,
      LEASE_SECONDS: "3",
      ...env,
    },
  });
  runners.push(runner);
  return runner;
}

async function create(mode: string): Promise<Pipeline> {
  return store.pipelines.create(
    newPipelineSchema.parse({
      name: "films",
      source_connection: "films",
      source_query: "SELECT id, title, modified FROM content.film",
      target_table: "analytics.films",
      target_key: ["id"],
      create_target: true,
      mode,
      ...(mode === "incremental" && { incremental_key: "modified", incremental_id_key: "id" }),
      batch_size: 300,
    }),
    "test",
  );
}

const rows = async (database: TestDatabase, table: string): Promise<string[]> =>
  (await database.query(`SELECT t::text AS row FROM ${table} t ORDER BY id`)).map(({ row }) => row as string);

async function succeeded(pipeline: Pipeline): Promise<Run> {
  await until("the pipeline is IDLE", async () => (await store.pipelines.get(pipeline.id)).status === "IDLE");
  const [run] = await askedRuns(store, pipeline.id);
  expect(run).toMatchObject({ status: "SUCCESS", data_path: "stream" });
  return run as Run;
}

it("a target that was restored to an earlier moment is noticed by the checkpoint beside its data", async () => {
  const pipeline = await create("incremental");
  startRunner();
  await store.requests.run(pipeline.id, "api");
  await succeeded(pipeline);
  // As the target's database was before its last batch.
  await target.query(`DELETE FROM analytics.films WHERE id > 2700;
    UPDATE analytics._vitrina_checkpoint SET batch_no = batch_no - 1`);
  await store.requests.run(pipeline.id, "api");
  const run = await succeeded(pipeline);
  expect(run).toMatchObject({ rows_read: 3000, rows_written: 300, rows_unchanged: 2700 });
  expect(run.notes.join()).toContain("older than the checkpoint");
  expect(await rows(target, "analytics.films")).toEqual(await rows(source, "content.film"));
});

/** Each leaves the unfinished load behind. */
const DECISIONS = {
  reset: { change: (id: PipelineId) => store.state.reset(id), rowsRead: 3000 },
  keep: { change: (id: PipelineId) => store.state.keep(id), rowsRead: 3000 },
  set: {
    change: (id: PipelineId) => store.state.set(id, { value: "2020-01-01 00:10:00+00", id: "600" }),
    rowsRead: 2400,
  },
};

it.each(
  LONG
    ? ([
        ["reset", "full"],
        ["reset", "incremental"],
        ["keep", "incremental"],
        ["set", "incremental"],
      ] as const)
    : ([["reset", "incremental"]] as const),
)("a person's %s counts in mode %s, although the target is one batch ahead of the meta-store", async (name, mode) => {
  const pipeline = await create(mode);
  const killed = startRunner({ VITRINA_FAULT: "data_committed:4:kill" });
  await store.requests.run(pipeline.id, "api");
  expect(await killed.exited).toBe("SIGKILL");
  expect((await store.state.get(pipeline.id)).batchNo).toBe(3);
  expect(await target.query("SELECT batch_no::int FROM analytics._vitrina_checkpoint")).toEqual([{ batch_no: 4 }]);

  await store.requests.pause(pipeline.id);
  startRunner();
  await until("the pipeline is PAUSED", async () => (await store.pipelines.get(pipeline.id)).status === "PAUSED");
  await DECISIONS[name].change(pipeline.id);
  // The cursor does not move with this change: only who reads the row again sees it.
  await source.query("UPDATE content.film SET title = 'new' WHERE id = 700");
  await store.requests.run(pipeline.id, "api");
  expect(await succeeded(pipeline)).toMatchObject({ resumed: false, rows_read: DECISIONS[name].rowsRead });
  expect(await rows(target, "analytics.films")).toEqual(await rows(source, "content.film"));
});

describe.each(LONG ? ["full", "incremental"] : ["incremental"])("a load in mode %s", (mode) => {
  it("R1.1 works across three databases, and a second run changes nothing", async () => {
    const pipeline = await create(mode);
    startRunner();
    await store.requests.run(pipeline.id, "api");
    expect(await succeeded(pipeline)).toMatchObject({ rows_read: 3000, rows_written: 3000, batches: 10 });
    expect(await rows(target, "analytics.films")).toEqual(await rows(source, "content.film"));
    await source.query("UPDATE content.film SET title = 'new', modified = modified + interval '1 year' WHERE id = 7");
    await store.requests.run(pipeline.id, "api");
    expect(await succeeded(pipeline)).toMatchObject({ rows_written: 1 });
    expect(await rows(target, "analytics.films")).toEqual(await rows(source, "content.film"));
  });

  it.each(LONG ? ["checkpoint_recorded", "batch_committed", "batch_applied"] : ["batch_applied"])(
    "R4.4 loses and doubles nothing when its runner is killed at %s",
    async (point) => {
      const pipeline = await create(mode);
      const first = startRunner({ VITRINA_FAULT: `${point}:4:kill` });
      await store.requests.run(pipeline.id, "api");
      expect(await first.exited).toBe("SIGKILL");
      expect(first.output()).toContain(`FAULT ${point} kill`);
      startRunner();
      const last = await succeeded(pipeline);
      expect(last.rows_read).toBeLessThanOrEqual(2100);
      expect(last.rows_read).toBeGreaterThan(0);
      expect(await rows(target, "analytics.films")).toEqual(await rows(source, "content.film"));
    },
  );
});
