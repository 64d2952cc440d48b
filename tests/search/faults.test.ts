import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";
import { type BulkFault, type FaultProxy, startFaultProxy } from "../support/search-fault-proxy.ts";

let bench: SearchBench;
let proxy: FaultProxy;
beforeEach(async () => {
  proxy = await startFaultProxy(inject("searchUrl"));
  bench = await openSearchBench({ ELASTICSEARCH_URL: proxy.url, ELASTICSEARCH_TIMEOUT_SECONDS: "3" });
  await bench.startRunner();
});
afterEach(async () => {
  await bench.close();
  await proxy.close();
});

async function films(mode: "full" | "incremental", more: object = {}) {
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title, '2020-01-01'::timestamptz + n * interval '1 s' AS modified
       FROM generate_series(1, 1000) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
  const cursor = mode === "incremental" && { incremental_key: "modified", incremental_id_key: "id" };
  const config = { source_query: "SELECT id, title, modified FROM content.film", target_key: ["id"], batch_size: 250 };
  return bench.createIndex({ ...config, mode, ...cursor, ...more });
}

const CASES: [BulkFault[]][] = [
  [["some-429", "some-429"]],
  [["some-500"]],
  [["429"]],
  [["503", "503"]],
  [["block", "block"]],
  [["silence"]],
  [["cut"]],
  [["short"]],
  [["garbage"]],
];

it.each(CASES)("R4.4 a full load bears %j: every document arrives, once, and the run adds up", async (faults) => {
  const pipeline = await films("full");
  proxy.next(...faults);
  const run = await bench.run(pipeline);
  expect(proxy.happened).toEqual(faults);
  expect(run).toMatchObject({ status: "SUCCESS", attempt: 1, rows_read: 1000, rows_written: 1000, rows_rejected: 0 });
  const documents = await bench.search.documents(pipeline.index);
  expect(documents.size).toBe(1000);
  for (let id = 1; id <= 1000; id++) expect(documents.get(String(id))).toMatchObject({ id, title: `film ${id}` });
});

it("R4.4 a full load bears a node that carries out a request, and whose answer is lost: the next node is asked", async () => {
  const other = await startFaultProxy(inject("searchUrl"));
  try {
    await bench.close();
    bench = await openSearchBench({ ELASTICSEARCH_URL: `${proxy.url},${other.url}` });
    await bench.startRunner();
    const pipeline = await films("full");
    proxy.next("cut");
    other.next("some-429");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", attempt: 1, rows_written: 1000 });
    expect([proxy.happened, other.happened]).toEqual([["cut"], ["some-429"]]);
    expect(await bench.search.count(pipeline.index)).toBe(1000);
  } finally {
    await other.close();
  }
});

it("R4.4 an incremental load bears all of them in turn", async () => {
  const pipeline = await films("incremental", { batch_size: 50 });
  const faults = CASES.flatMap(([some]) => some);
  // With a good answer after each, so that the waits do not add up.
  proxy.next(...faults.flatMap((fault) => [fault, "nothing" as const]));
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", attempt: 1, rows_written: 1000 });
  expect(proxy.happened).toEqual(faults);
  expect(await bench.search.count(pipeline.index)).toBe(1000);
});

it("sends less at once when the cluster has no room", async () => {
  const pipeline = await films("full", {
    source_query: "SELECT id, repeat(title, 500) AS title FROM content.film",
    batch_size: 1000,
  });
  proxy.next("429", "429", "429", "429");
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1000 });
  const [first = 0, ...later] = proxy.sizes;
  expect(later[3]).toBeLessThan(first / 2);
  expect(await bench.search.count(pipeline.index)).toBe(1000);
});

it("fails with a sentence when the trouble does not end, and the checkpoint stays", async () => {
  await bench.close();
  bench = await openSearchBench({
    ELASTICSEARCH_URL: proxy.url,
    ELASTICSEARCH_PATIENCE_SECONDS: "1",
    RETRY_ATTEMPTS: "1",
  });
  await bench.startRunner();
  const pipeline = await films("full", { retry_for_seconds: 0 });
  proxy.next(...Array.from({ length: 100 }, (): BulkFault => "block"));
  expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "SEARCH_BUSY", rows_read: 0 });
  expect(await bench.search.indexOf(pipeline.index)).toBeUndefined();
});
