import { afterEach, beforeEach, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** Incremental loads with `null_cursor: each_run`. */

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
  await bench.query(`CREATE TABLE content.film AS
    SELECT n AS id, 'film ' || n AS title,
           CASE WHEN n % 2 = 0 THEN '2020-01-01'::timestamptz + n * interval '1 second' END AS modified
      FROM generate_series(1, 1000) n`);
  await bench.startRunner();
});
afterEach(() => bench.close());

async function create(more: object = {}): Promise<Pipeline> {
  return bench.create({
    source_query: "SELECT id, title, modified FROM content.film",
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "modified",
    incremental_id_key: "id",
    null_cursor: "each_run",
    batch_size: 120,
    ...more,
  });
}

const watermarkOf = async ({ id }: Pipeline) => (await bench.store.state.get(id)).watermark;

it("R5.2 reads rows without an incremental key in every run, and the others once", async () => {
  const pipeline = await create();
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 1000, rows_written: 1000 });
  const watermark = await watermarkOf(pipeline);
  await bench.query("UPDATE content.film SET title = 'changed' WHERE id IN (1, 2)");
  // The one with a stamp has not moved; the one without is met again.
  expect(await bench.run(pipeline)).toMatchObject({ rows_read: 500, rows_written: 1, rows_unchanged: 499 });
  expect(await watermarkOf(pipeline)).toEqual(watermark);
  await bench.query("UPDATE content.film SET modified = now() WHERE id IN (2, 3)");
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 2 });
  expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
});

it("keeps each refused row without a key once, however many runs meet it", async () => {
  const pipeline = await create({ create_target: false, max_rejects: 3 });
  await bench.query(`CREATE TABLE ${pipeline.target_table}
    (id int PRIMARY KEY, title text CHECK (title <> 'bad'), modified timestamptz)`);
  await bench.query("UPDATE content.film SET title = 'bad' WHERE id IN (1, 3, 800)");
  const keys = async () =>
    (await bench.store.rejects.list(pipeline.id, { limit: 50 })).items.map(({ key }) => key?.["id"]);
  for (const rejected of [3, 2, 2]) {
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: rejected });
    expect((await keys()).sort()).toEqual(["1", "3", "800"]);
  }
  await bench.query("UPDATE content.film SET title = 'good' WHERE id IN (1, 3)");
  expect(await bench.run(pipeline)).toMatchObject({ rows_rejected: 0, rows_written: 2 });
  expect(await keys()).toEqual(["800"]);
});

it("R7 are compared by a reconcile, and pending when they differ", async () => {
  const pipeline = await create();
  await bench.run(pipeline);
  await bench.query("UPDATE content.film SET title = 'changed' WHERE id = 1");
  const { id } = await bench.store.reconciles.request(pipeline.id, "test");
  const done = await until("the reconcile ends", async () => {
    const found = await bench.store.reconciles.get(pipeline.id, id);
    return found.finished_at === null ? undefined : found;
  });
  expect(done).toMatchObject({ status: "MATCH", report: { pending: { count: 1, keys: [{ id: "1" }] } } });
});
