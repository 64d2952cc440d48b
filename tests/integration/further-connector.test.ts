import { afterAll, beforeAll, expect, it } from "vitest";
import { CONNECTORS } from "../../src/connectors/registry.ts";
import { errorsOf, pipelineBody } from "../support/api-client.ts";
import { memorySink } from "../support/memory-connector/description.ts";
import { shelves } from "../support/memory-connector/sink.ts";
import { openTryOut, type TryOut } from "../support/try-out.ts";
import { until } from "../support/until.ts";

/** All that it takes, beside its folder. */
const WITH_SHELVES = { ...CONNECTORS, sinks: [...CONNECTORS.sinks, memorySink] };

let bench: TryOut;
beforeAll(async () => {
  bench = await openTryOut({ TARGET_SHELVES: "film_*,small", SHELF_ROWS: "5" }, WITH_SHELVES);
  await bench.query(
    "CREATE TABLE content.film AS SELECT n AS id, ' film ' || n AS title FROM generate_series(1, 4) AS n",
  );
  await bench.startRunner();
});
afterAll(() => bench.close());

const QUERY = "SELECT id, title FROM content.film";
const onShelf = (name: string, more: object = {}): object =>
  pipelineBody(name, { source_query: QUERY, target_table: `memory:${name}`, create_target: true, ...more });
const create = (body: object) => bench.post("/api/v1/pipelines", body);

async function run(name: string) {
  expect((await bench.post(`/api/v1/pipelines/${name}/run`)).status).toBe(200);
  return bench.ended(await bench.store.pipelines.get(name));
}

async function reconcile(name: string) {
  const { body: asked } = await bench.post(`/api/v1/pipelines/${name}/reconcile`);
  return until("the comparison ends", async () => {
    const answer = await fetch(`${bench.url}/api/v1/pipelines/${name}/reconciles/${asked.id}`);
    const found = (await answer.json()) as { status: string; report: { different: object; missing: object } };
    return ["WAITING", "RUNNING"].includes(found.status) ? undefined : found;
  });
}

it("a connector of one folder and one line is created, run and reconciled like any other", async () => {
  expect(await create(onShelf("film_titles", { target_options: { trim: true } }))).toMatchObject({ status: 201 });
  expect(await run("film_titles")).toMatchObject({
    status: "SUCCESS",
    data_path: "rows",
    strategy: "new shelf",
    rows_read: 4,
    rows_written: 4,
  });
  const rows = shelves.get("film_titles")?.rows;
  expect([...(rows?.values() ?? [])].map(({ title }) => title)).toEqual(["film 1", "film 2", "film 3", "film 4"]);
  expect(await reconcile("film_titles")).toMatchObject({ status: "MATCH" });

  rows?.set('["2"]', { id: "2", title: "changed" });
  expect(await reconcile("film_titles")).toMatchObject({
    status: "DIFFERENT",
    report: { different: { count: 1, keys: [{ key: { id: "2" }, columns: ["title"] }] }, missing: { count: 0 } },
  });
});

it("loads into it by a cursor, batch by batch", async () => {
  const incremental = { mode: "incremental", incremental_key: "id", batch_size: 2 };
  expect(await create(onShelf("film_by_cursor", incremental))).toMatchObject({ status: 201 });
  expect(await run("film_by_cursor")).toMatchObject({ status: "SUCCESS", strategy: "upsert", rows_written: 4 });
  await bench.query("INSERT INTO content.film VALUES (5, 'late')");
  expect(await run("film_by_cursor")).toMatchObject({ status: "SUCCESS" });
  expect(shelves.get("film_by_cursor")?.rows.size).toBe(5);
  await bench.query("DELETE FROM content.film WHERE id = 5");
});

it("takes its allow-list and its options from its description", async () => {
  const elsewhere = await create(onShelf("other"));
  expect(errorsOf(elsewhere)).toEqual({
    "/target_table":
      "memory:other is not an allowed target; allowed are: analytics.<table>, memory:film_*, memory:small.",
  });
  const unknown = await create(onShelf("film_odd", { target_options: { mapping: {} } }));
  expect(errorsOf(unknown)).toEqual({ "/target_options/mapping": "Nothing of that name can be set here." });
  const table = await create(pipelineBody("a_table", { target_options: { trim: true } }));
  expect(errorsOf(table)).toEqual({
    "/target_options": "Only an index or a shelf has options: leave them out for a table.",
  });
  const nowhere = await create(onShelf("film_bad", { target_table: "shelf" }));
  expect(errorsOf(nowhere)["/target_table"]).toContain(
    "write <schema>.<table>, e.g. analytics.films, or es:<index>, or memory:<shelf>.",
  );
  const documentation = await (await fetch(`${bench.url}/openapi.json`)).text();
  expect(documentation).toContain("leave out the blanks around every value");
});

it("fails a run with an error of its own, and what to do about it", async () => {
  expect(await create(onShelf("small", { source_query: "SELECT generate_series(1, 6) AS id" }))).toMatchObject({
    status: 201,
  });
  expect(await run("small")).toMatchObject({
    status: "FAILED",
    error_code: "SHELF_FULL",
    error: expect.stringMatching(/has room for 5 rows\. Raise SHELF_ROWS/),
    attempt: 1,
  });
});

it("says what only other kinds can do", async () => {
  expect(await create(onShelf("film_kept"))).toMatchObject({ status: 201 });
  const restored = await bench.post("/api/v1/pipelines/film_kept/restore-previous");
  expect(restored.body.detail).toBe("Only an index that is loaded in mode full keeps the one before.");
  const validated = await bench.post("/api/v1/pipelines/film_kept/validate");
  expect(validated.body.target).toMatchObject({ note: "Only a runner talks to a target of this kind." });
});
