import { afterEach, beforeEach, expect, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** What a pipeline leaves at a target that it no longer has. */

let bench: Bench;
beforeEach(async () => {
  bench = await openBench({ RUNNER_POLL_SECONDS: "1" });
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, 60000) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
  await bench.startRunner();
});
afterEach(() => bench.close());

const CONFIG = { source_query: "SELECT id, title FROM content.film", target_key: ["id"], batch_size: 1000 };
const loadTables = () =>
  bench.query(String.raw`SELECT relname FROM pg_class WHERE relname LIKE '\_vitrina\_%' AND relkind = 'r' ORDER BY 1`);
const abandoned = () => bench.query("SELECT target_table FROM etl.etl_abandoned_targets ORDER BY id");

/** Its first load is complete, its second one is not. */
async function pausedInLoad(): Promise<Pipeline> {
  const pipeline = await bench.create(CONFIG);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  await bench.query("UPDATE content.film SET title = title || '!'");
  const { batchNo } = await bench.store.state.get(pipeline.id);
  await bench.store.requests.run(pipeline.id, "api");
  await until("a batch is committed", async () => (await bench.store.state.get(pipeline.id)).batchNo > batchNo + 1);
  await bench.store.requests.pause(pipeline.id);
  expect(await bench.ended(pipeline)).toMatchObject({ status: "PAUSED" });
  expect(await loadTables()).not.toEqual([]);
  return pipeline;
}

it("an unfinished load of a deleted pipeline is cleared away; what people read stays", async () => {
  const pipeline = await pausedInLoad();
  await bench.store.pipelines.delete(pipeline.id);
  await until("the load is gone", async () => (await loadTables()).length === 0);
  await until("nothing is left to do", async () => (await abandoned()).length === 0);
  expect(await bench.query(`SELECT count(*)::int AS rows FROM ${pipeline.target_table}`)).toEqual([{ rows: 60_000 }]);
});

it("so is that of a pipeline with a new target, while it loads the new one", async () => {
  const pipeline = await pausedInLoad();
  const moved = await bench.store.pipelines.update(
    pipeline.id,
    { target_table: "analytics.elsewhere" },
    { author: "test" },
  );
  expect(await bench.run(moved)).toMatchObject({ status: "SUCCESS", rows_read: 60_000 });
  await until("the load is gone", async () => (await loadTables()).length === 0);
  expect(await bench.query("SELECT count(*)::int AS rows FROM analytics.elsewhere")).toEqual([{ rows: 60_000 }]);
});

it("a pipeline that has its target again by then keeps its load", async () => {
  const pipeline = await pausedInLoad();
  await bench.stopRunner();
  await bench.store.pipelines.update(pipeline.id, { target_table: "analytics.elsewhere" }, { author: "test" });
  await bench.store.pipelines.update(pipeline.id, { target_table: pipeline.target_table }, { author: "test" });
  expect(await abandoned()).toEqual([{ target_table: pipeline.target_table }, { target_table: "analytics.elsewhere" }]);
  const before = await loadTables();
  await bench.startRunner();
  await until("nothing is left to do", async () => (await abandoned()).length === 0);
  expect(await loadTables()).toEqual(before);
});

it("a target that cannot be reached is tried again later, and keeps no pipeline waiting", async () => {
  const { id: _, ...config } = newPipelineSchema.parse({ ...CONFIG, name: "to_index", target_table: "es:somewhere" });
  const unreachable = await openBench({
    RUNNER_POLL_SECONDS: "1",
    TARGET_INDEXES: "*",
    ELASTICSEARCH_URL: "http://127.0.0.1:9",
  });
  try {
    const { id } = await unreachable.store.pipelines.create(config, "test");
    await unreachable.store.pipelines.delete(id);
    await unreachable.startRunner();
    const due = "SELECT look_after > clock_timestamp() AS later FROM etl.etl_abandoned_targets";
    await until("it was tried", async () => (await unreachable.query(due))[0]?.["later"]);
    await unreachable.query("CREATE TABLE content.film AS SELECT 1 AS id, 'a' AS title");
    expect(await unreachable.run(await unreachable.create(CONFIG))).toMatchObject({ status: "SUCCESS" });
    expect(await unreachable.query(due)).toEqual([{ later: true }]);
  } finally {
    await unreachable.close();
  }
});
