import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** A request that is withdrawn leaves no trace; a run that is cancelled ends soon, and the next one continues it. */

let database: TestDatabase;
let store: MetaStore;
let stopRunner: () => Promise<void> = async () => undefined;

beforeEach(async () => {
  database = await createTestDatabase(inject("postgresUrl"), { settings: { LEASE_SECONDS: "3" } });
  await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, 1000) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id);
    GRANT SELECT ON content.film TO vitrina_reader; ANALYZE content.film`);
  store = database.openStore();
});
afterEach(async () => {
  await stopRunner();
  stopRunner = async () => undefined;
  await database.drop();
});

type DataPath = "push-down" | "stream";

async function start(path: DataPath): Promise<void> {
  const { urls: all } = database;
  const urls = path === "stream" ? { ...all, loader: undefined } : all;
  const runner = await startRunner(database.settings, urls, recordingLog());
  stopRunner = () => runner.stop();
}

async function create(more: object = {}): Promise<Pipeline> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  const config = {
    name,
    source_query: "SELECT id, title FROM content.film",
    target_table: `analytics.${name}`,
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "id",
    batch_size: 100,
    ...more,
  };
  return store.pipelines.create(newPipelineSchema.parse(config), "test");
}

const runsOf = async ({ id }: Pipeline) => (await store.runs.list(id, { limit: 20 })).items.reverse();

const settled = ({ id }: Pipeline, status: string) =>
  until(`the pipeline is ${status}`, async () => (await store.pipelines.get(id)).status === status);

const rowOf = async ({ id }: Pipeline) =>
  (
    await database.query(
      `SELECT status, status_before, failure_may_pass, run_requested_at, run_trigger, run_kind, run_id
         FROM etl.etl_pipelines WHERE id = $1`,
      [id],
    )
  )[0];

describe("a request that no runner has taken", () => {
  const AT_REST = {
    status_before: null,
    run_requested_at: null,
    run_trigger: null,
    run_kind: "load",
    run_id: null,
  };

  it("is withdrawn at once, and no runner finds it", async () => {
    const pipeline = await create();
    await store.requests.run(pipeline.id, "api");
    expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "IDLE" });
    expect(await store.queue.claimNext(randomUUID(), 3000)).toBeUndefined();
    expect(await runsOf(pipeline)).toEqual([]);
    expect(await rowOf(pipeline)).toMatchObject({ status: "IDLE", ...AT_REST });
    expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "IDLE" });
  });

  it("leaves a pipeline failed as it was: where the trouble may pass, its schedule still tries again", async () => {
    for (const [code, mayPass] of [
      ["DATABASE_UNAVAILABLE", true],
      ["TARGET_MISSING", false],
    ] as const) {
      const pipeline = await create();
      await store.requests.run(pipeline.id, "api");
      const claim = (await store.queue.claimNext(randomUUID(), 3000)) as Claim;
      await store.queue.finishRun(claim, { kind: "failed", mayPass, code, error: "It is away." });
      await store.requests.run(pipeline.id, "api");
      expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "FAILED" });
      expect(await rowOf(pipeline)).toMatchObject({ ...AT_REST, failure_may_pass: mayPass });
    }
  });

  it("leaves a pipeline paused as it was, and takes a restore back with it", async () => {
    const pipeline = await create();
    await store.requests.run(pipeline.id, "api");
    const claim = (await store.queue.claimNext(randomUUID(), 3000)) as Claim;
    await store.requests.pause(pipeline.id);
    await store.queue.finishRun(claim, { kind: "paused" });
    await store.requests.run(pipeline.id, "api");
    expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "PAUSED" });

    const other = await create({ mode: "full", incremental_key: null });
    await store.requests.restore(other.id);
    expect(await store.requests.cancel(other.id)).toMatchObject({ status: "IDLE" });
    expect(await rowOf(other)).toMatchObject(AT_REST);
  });
});

describe("a run", () => {
  /** The server is at it, on behalf of the run. */
  const isAtIt = async (sign: string): Promise<boolean> =>
    (
      await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'vitrina\\_%'
            AND state = 'active' AND ${sign}`,
      )
    ).length > 0;

  /** Writing the row with this id never ends. */
  async function stuckAt(pipeline: Pipeline, id: number): Promise<void> {
    await database.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text);
      GRANT ALL ON ${pipeline.target_table} TO vitrina_writer;
      CREATE FUNCTION analytics.stuck() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$;
      CREATE TRIGGER stuck BEFORE INSERT ON ${pipeline.target_table} FOR EACH ROW WHEN (NEW.id = ${id})
        EXECUTE FUNCTION analytics.stuck()`);
  }

  const letGo = (pipeline: Pipeline) =>
    until("the server has given the statement up", async () => !(await isAtIt("wait_event = 'PgSleep'"))).then(() =>
      database.query(`DROP TRIGGER stuck ON ${pipeline.target_table}`),
    );

  it.each<DataPath>(["push-down", "stream"])(
    "ends in the middle of a statement, without its batch, and the next one reads only the rest: %s",
    async (path) => {
      await start(path);
      const pipeline = await create();
      await stuckAt(pipeline, 501);
      await store.requests.run(pipeline.id, "api");
      await until("it is stuck", () => isAtIt("wait_event = 'PgSleep'"));
      expect(await store.requests.cancel(pipeline.id)).toMatchObject({ status: "CANCEL_REQUESTED" });
      await settled(pipeline, "IDLE");
      expect(await runsOf(pipeline)).toMatchObject([
        { status: "CANCELLED", data_path: path, rows_written: 500, batches: 5, error: null, error_code: null },
      ]);
      const count = `SELECT count(*)::int AS rows FROM ${pipeline.target_table}`;
      expect(await database.query(count)).toEqual([{ rows: 500 }]);

      await letGo(pipeline);
      await store.requests.run(pipeline.id, "api");
      await settled(pipeline, "IDLE");
      expect((await runsOf(pipeline)).at(-1)).toMatchObject({ status: "SUCCESS", resumed: true, rows_read: 500 });
      expect(await database.query(count)).toEqual([{ rows: 1000 }]);
    },
  );

  it.each<DataPath>(["push-down", "stream"])("ends while its query thinks: %s", async (path) => {
    await start(path);
    const forEver = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 2000000000)";
    const pipeline = await create({
      source_query: `SELECT f.id, (${forEver} SELECT max(n) FROM r) AS thought FROM content.film f`,
      mode: "full",
      incremental_key: null,
      create_target: true,
    });
    await store.requests.run(pipeline.id, "schedule");
    const thinks = "query_start < clock_timestamp() - interval '1 second' AND query LIKE '%2000000000%'";
    await until("it thinks", () => isAtIt(thinks));
    await store.requests.cancel(pipeline.id);
    await settled(pipeline, "IDLE");
    expect(await runsOf(pipeline)).toMatchObject([{ status: "CANCELLED", trigger: "schedule", batches: 0 }]);
    await until("the server has given the query up", async () => !(await isAtIt(thinks)));
  });

  it("that is to pause can still be cancelled; a pause or a run is refused meanwhile", async () => {
    await start("stream");
    const pipeline = await create();
    await stuckAt(pipeline, 1);
    await store.requests.run(pipeline.id, "api");
    await until("it is stuck", () => isAtIt("wait_event = 'PgSleep'"));
    await store.requests.pause(pipeline.id);
    await store.requests.cancel(pipeline.id);
    await expect(store.requests.pause(pipeline.id)).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
    await expect(store.requests.run(pipeline.id, "api")).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
    await settled(pipeline, "IDLE");
    expect(await runsOf(pipeline)).toMatchObject([{ status: "CANCELLED" }]);
  });
});

describe("how the run is told to end", () => {
  async function cancelled(): Promise<Claim> {
    const pipeline = await create();
    await store.requests.run(pipeline.id, "api");
    const claim = (await store.queue.claimNext(randomUUID(), 3000)) as Claim;
    await store.requests.cancel(pipeline.id);
    return claim;
  }
  const failure = { code: "DATABASE_UNAVAILABLE", error: "It is away." } as const;

  it.each([
    ["a success that comes first is one", { kind: "succeeded" }, "IDLE", "SUCCESS"],
    ["a load in parts is not followed by another run", { kind: "succeeded", inParts: true }, "IDLE", "CANCELLED"],
    ["a pause that was seen first", { kind: "paused" }, "IDLE", "CANCELLED"],
    ["a runner that stops", { kind: "handed_back" }, "IDLE", "CANCELLED"],
    ["trouble is not waited for", { kind: "waiting", waitMs: 1, isNew: true, ...failure }, "IDLE", "FAILED"],
    ["a failure is told", { kind: "failed", mayPass: true, ...failure }, "FAILED", "FAILED"],
  ] as const)("%s", async (_, outcome, status, run) => {
    const claim = await cancelled();
    expect(await store.queue.finishRun(claim, outcome)).toBe(status);
    expect(await runsOf(claim.pipeline)).toMatchObject([{ status: run }]);
  });

  it("a runner that is lost: recovery ends the run as cancelled, and nobody takes it up again", async () => {
    const { pipeline } = await cancelled();
    await database.query(
      "UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE status = 'RUNNING'",
    );
    expect(await store.queue.rescueExpired(randomUUID())).toMatchObject([
      { id: pipeline.id, status: "IDLE", code: null },
    ]);
    expect(await runsOf(pipeline)).toMatchObject([{ status: "CANCELLED", error: null }]);
    expect(await store.queue.claimNext(randomUUID(), 3000)).toBeUndefined();
  });
});
