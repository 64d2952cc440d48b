import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Reconcile, ReconcileReport } from "../../src/domain/reconcile.ts";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";
import { type FaultProxy, startFaultProxy } from "../support/search-fault-proxy.ts";
import { until } from "../support/until.ts";

let bench: SearchBench;
let proxy: FaultProxy;
beforeEach(async () => {
  proxy = await startFaultProxy(inject("searchUrl"));
  bench = await openSearchBench({ ELASTICSEARCH_URL: proxy.url, ELASTICSEARCH_PATIENCE_SECONDS: "60" });
  await bench.startRunner();
  await bench.query(`CREATE TABLE content.film AS
    SELECT n AS id, 'film ' || n AS title, (n % 100)::numeric / 10 AS rating, jsonb_build_object('big', 12345678901234567890 + n) AS doc,
           ARRAY['a', NULL, n::text] AS tags, '2020-01-01 00:00:00.000001+00'::timestamptz + n * interval '1 s' AS modified, false AS gone
      FROM generate_series(1, 5000) n`);
});
afterEach(async () => {
  await bench.close();
  await proxy.close();
});

async function reconcile({ id }: Pipeline): Promise<Reconcile & { report: ReconcileReport }> {
  const { id: reconcileId } = await bench.store.reconciles.request(id, "test");
  const done = await until("the reconcile ends", async () => {
    const found = await bench.store.reconciles.get(id, reconcileId);
    return ["WAITING", "RUNNING"].includes(found.status) ? undefined : found;
  });
  if (done.report === null) throw new Error(`There is no report: ${done.error}`);
  return done as Reconcile & { report: ReconcileReport };
}

const QUERY = "SELECT id, title, rating, doc, tags, modified FROM content.film";
const ids = (...numbers: number[]) => numbers.map((id) => ({ id: String(id) }));

describe("R7 reconcile of an index", () => {
  it("agrees after a load, and then finds exactly what is missing, extra or different", async () => {
    const pipeline = await bench.createIndex({ source_query: QUERY, target_key: ["id"], batch_size: 700 });
    await bench.run(pipeline);
    const { status, report } = await reconcile(pipeline);
    expect(status).toBe("MATCH");
    const range = { key_min: { id: "1" }, key_max: { id: "5000" } };
    expect(report.source).toMatchObject({ rows: 5000, rows_duplicate: 0, rows_refused: 0, ...range });
    expect(report.target).toMatchObject({ rows: 5000, ...range });

    const index = await bench.search.indexOf(pipeline.index);
    await bench.search.ask("DELETE", `/${index}/_doc/17`);
    await bench.search.ask("POST", `/${index}/_update/42`, { doc: { title: "tampered", rating: 9 } });
    await bench.search.ask("PUT", `/${index}/_doc/7777`, { id: 7777, title: "too much" });
    await bench.query("UPDATE content.film SET doc = jsonb_set(doc, '{n}', 'null') WHERE id = 4999");
    const after = await reconcile(pipeline);
    expect(after.status).toBe("DIFFERENT");
    expect(after.report).toMatchObject({
      missing: { count: 1, keys: ids(17) },
      extra: { count: 1, keys: ids(7777) },
      different: {
        count: 2,
        keys: [
          { key: { id: "42" }, columns: ["title", "rating"] },
          { key: { id: "4999" }, columns: ["doc"] },
        ],
      },
      target: { rows: 5000, key_max: { id: "7777" } },
    });
    await bench.run(pipeline);
    expect((await reconcile(pipeline)).status).toBe("MATCH");
  });

  it("lists keys beyond what a JSON parser keeps digit by digit, whoever wrote them", async () => {
    const source_query = "SELECT 9007199254740990 + id AS id, title FROM content.film WHERE id < 4";
    const pipeline = await bench.createIndex({ source_query, target_key: ["id"] });
    await bench.run(pipeline);
    const put = (id: string) =>
      fetch(`${bench.search.url}/${pipeline.index}/_doc/${id}`, {
        method: "PUT",
        body: `{"id":${id},"title":"too much"}`,
        headers: { "content-type": "application/json" },
      });
    const extra = ["9007199254740995", "9007199254740997", "9223372036854775807"];
    for (const id of extra) expect((await put(id)).status).toBe(201);
    const { report } = await reconcile(pipeline);
    expect(report).toMatchObject({
      source: { key_min: { id: "9007199254740991" }, key_max: { id: "9007199254740993" } },
      target: { key_min: { id: "9007199254740991" }, key_max: { id: "9223372036854775807" } },
      extra: { count: 3, keys: extra.map((id) => ({ id })) },
      different: { count: 0 },
    });
  });

  it.each(["point in time", "search"] as const)(
    "waits for a shard that is away (%s): an index that is read in part is never compared",
    async (loss) => {
      const pipeline = await bench.createIndex({ source_query: QUERY, target_key: ["id"] });
      await bench.run(pipeline);
      const whole = proxy.missed();
      proxy.loseShard(loss);
      const done = reconcile(pipeline);
      await until("the shard is missed", () => proxy.missed() > whole);
      proxy.loseShard(undefined);
      expect(await done).toMatchObject({ status: "MATCH", report: { missing: { count: 0 }, target: { rows: 5000 } } });
    },
  );

  it("waits for a refresh that fails: documents that are not searchable yet count", async () => {
    const settings = { refresh_interval: "-1" };
    const pipeline = await bench.createIndex({ source_query: QUERY, target_key: ["id"], target_options: { settings } });
    await bench.run(pipeline);
    const index = await bench.search.indexOf(pipeline.index);
    await bench.search.ask("PUT", `/${index}/_doc/7777`, { id: 7777, title: "too much" });
    const whole = proxy.missed();
    proxy.loseShard("refresh");
    const done = reconcile(pipeline);
    await until("the shard is missed", () => proxy.missed() > whole);
    proxy.loseShard(undefined);
    expect(await done).toMatchObject({ status: "DIFFERENT", report: { extra: { count: 1, keys: ids(7777) } } });
  });

  it("counts what the next run reads apart, and what ought to be deleted as extra", async () => {
    const pipeline = await bench.createIndex({
      source_query: "SELECT id, title, modified, gone FROM content.film",
      target_key: ["id"],
      mode: "incremental",
      incremental_key: "modified",
      incremental_id_key: "id",
      target_options: { delete_when: "gone" },
    });
    await bench.run(pipeline);
    expect((await reconcile(pipeline)).status).toBe("MATCH");
    await bench.query("UPDATE content.film SET title = 'new', modified = now() WHERE id = 8");
    const pending = await reconcile(pipeline);
    expect(pending.report).toMatchObject({ pending: { count: 1, keys: ids(8) }, different: { count: 0 } });
    expect(pending.report.target.incremental_key_min).toBe("2020-01-01 00:00:01.000001+00");
    await bench.query("UPDATE content.film SET gone = true WHERE id IN (5, 6)");
    expect((await reconcile(pipeline)).report).toMatchObject({ extra: { count: 2, keys: ids(5, 6) } });
  });
});
