import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { pauseOnBatch, runToPause } from "../support/batches.ts";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";
import { until } from "../support/until.ts";

let bench: SearchBench;
beforeEach(async () => {
  bench = await openSearchBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

async function films(count: number, more: object = {}) {
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title, clock_timestamp() AS modified, false AS gone
       FROM generate_series(1, ${count}) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
  return bench.createIndex({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    batch_size: 100,
    ...more,
  });
}

const INCREMENTAL = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
const change = (pipeline: Pipeline, patch: object) =>
  bench.store.pipelines.update(pipeline.id, patch, { author: "test" });

describe("a full load into an index", () => {
  it("R5.1 builds a new index each time, and keeps exactly one before it", async () => {
    const pipeline = await films(250);
    const { index } = pipeline;
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 250, strategy: "new index" });
    const first = await bench.search.indexOf(index);
    await bench.query("UPDATE content.film SET title = 'new' WHERE id = 7; DELETE FROM content.film WHERE id > 200");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 200, rows_deleted: 50 });
    const second = await bench.search.indexOf(index);
    expect(await bench.search.family(index)).toEqual({
      [first as string]: [`${index}__previous`],
      [second as string]: [index],
    });
    await bench.run(pipeline);
    const third = await bench.search.indexOf(index);
    expect(await bench.search.family(index)).toEqual({
      [second as string]: [`${index}__previous`],
      [third as string]: [index],
    });
    const documents = await bench.search.documents(index);
    expect(documents.size).toBe(200);
    expect(documents.get("7")).toEqual({ id: 7, title: "new" });
  });

  it("keeps no previous index where the pipeline wants none", async () => {
    const pipeline = await films(10, { target_options: { keep_previous_hours: 0 } });
    await bench.run(pipeline);
    await bench.run(pipeline);
    expect(Object.values(await bench.search.family(pipeline.index))).toEqual([[pipeline.index]]);
  });

  it("R1.3 takes a changed mapping at once, without a document lost", async () => {
    const pipeline = await films(50);
    await bench.run(pipeline);
    await change(pipeline, {
      source_query: "SELECT id, length(title) AS title, modified FROM content.film",
      target_options: { mapping: { title: { type: "short" } }, settings: { number_of_shards: 2 } },
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 50, rows_rejected: 0 });
    const { body } = await bench.search.ask("GET", `/${pipeline.index}`);
    // biome-ignore lint/suspicious/noExplicitAny: the answer of the cluster.
    const { mappings, settings } = Object.values(body)[0] as any;
    expect(mappings.properties).toMatchObject({ title: { type: "short" }, modified: { type: "date_nanos" } });
    expect(settings.index.number_of_shards).toBe("2");
  });

  it("puts a row that the index refuses aside, writes the rest, and stops beyond the limit", async () => {
    const poison = { target_options: { mapping: { title: { type: "integer" } } } };
    const pipeline = await films(300, {
      ...poison,
      source_query: "SELECT id, CASE WHEN id % 100 = 50 THEN title ELSE id::text END AS title FROM content.film",
    });
    expect(await bench.run(pipeline)).toMatchObject({
      status: "SUCCESS",
      rows_read: 300,
      rows_written: 297,
      rows_rejected: 3,
    });
    expect(await bench.search.count(pipeline.index)).toBe(297);
    const rejects = await bench.query(
      "SELECT row_key, row->>'title' AS title, error_code, error FROM etl.etl_rejects ORDER BY id",
    );
    expect(rejects.map(({ row_key, title }) => ({ row_key, title }))).toEqual(
      ["50", "150", "250"].map((id) => ({ row_key: { id }, title: `film ${id}` })),
    );
    for (const { error_code, error } of rejects) {
      expect(error_code).toBe("ROW_REFUSED");
      expect(error).toMatch(/parsing_exception: .*failed to parse field \[title\] of type \[integer\]/);
      expect(error).not.toMatch(/film/);
    }
    await change(pipeline, { max_rejects: 2 });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_REJECTS" });
    expect(await bench.search.count(pipeline.index)).toBe(297);
  });

  it("refuses a concrete index under its name, and an alias of several, with a sentence; and changes nothing", async () => {
    const pipeline = await films(5);
    await bench.search.ask("PUT", `/${pipeline.index}`, {});
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "INDEX_NOT_AN_ALIAS" });
    expect(Object.keys(await bench.search.family(pipeline.index))).toEqual([pipeline.index]);
    await bench.search.drop(pipeline.index);
    for (const n of [1, 2])
      await bench.search.ask("PUT", `/${pipeline.index}__own${n}`, { aliases: { [pipeline.index]: {} } });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "INDEX_DIFFERS" });
    expect(Object.keys(await bench.search.family(pipeline.index))).toHaveLength(2);
  });

  it("does not judge what it would delete by the shards that happen to be there", async () => {
    await bench.close();
    bench = await openSearchBench({ ELASTICSEARCH_PATIENCE_SECONDS: "1" });
    await bench.startRunner();
    const pipeline = await films(5, { retry_for_seconds: 0 });
    const own = `${pipeline.index}__v1`;
    // One node takes one of the two shards, and the other one stays away.
    const settings = { number_of_shards: 2, number_of_replicas: 0, "routing.allocation.total_shards_per_node": 1 };
    const aliases = { [pipeline.index]: {} };
    await bench.search.ask("PUT", `/${own}?wait_for_active_shards=0`, { settings, aliases });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "SEARCH_BUSY" });
    expect(await bench.search.indexOf(pipeline.index)).toBe(own);
  });

  it("takes over an alias of somebody's own index, and leaves that index alone", async () => {
    const pipeline = await films(5);
    const own = `${pipeline.index}__v1`;
    await bench.search.ask("PUT", `/${own}`, { aliases: { [pipeline.index]: {} } });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect((await bench.search.family(pipeline.index))[own]).toEqual([]);
    expect(await bench.search.count(pipeline.index)).toBe(5);
  });

  it("R4.4 is not switched to when documents are missing from it, and is loaded again", async () => {
    const pipeline = await films(3000, { batch_size: 50 });
    await bench.store.requests.run(pipeline.id, "api");
    const [loading] = await until("a batch is committed", async () => {
      const { batchNo } = await bench.store.state.get(pipeline.id);
      return batchNo >= 2 ? Object.keys(await bench.search.family(pipeline.index)) : undefined;
    });
    const removal = await bench.search.ask("DELETE", `/${loading}/_doc/1`);
    expect(removal.body).toMatchObject({ result: "deleted" });
    await bench.ended(pipeline);
    const { items } = await bench.store.runs.list(pipeline.id, { limit: 10 });
    expect(items.map(({ status, error_code }) => ({ status, error_code }))).toEqual([
      { status: "SUCCESS", error_code: null },
      { status: "FAILED", error_code: "INDEX_INCOMPLETE" },
    ]);
    expect(items[0]).toMatchObject({ rows_read: 3000 });
    expect(await bench.search.count(pipeline.index)).toBe(3000);
    expect(Object.keys(await bench.search.family(pipeline.index))).toHaveLength(1);
  });

  it("R4.3 can be paused, and goes on in the same index", async () => {
    const pipeline = await films(3000, { batch_size: 50 });
    await bench.store.requests.run(pipeline.id, "api");
    await until("batches are committed", async () => (await bench.store.state.get(pipeline.id)).batchNo >= 2);
    await bench.store.requests.pause(pipeline.id);
    const paused = await bench.ended(pipeline);
    expect(paused.status).toBe("PAUSED");
    expect(await bench.search.indexOf(pipeline.index)).toBeUndefined();
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 3000 - paused.rows_read });
    expect(await bench.search.count(pipeline.index)).toBe(3000);
    // A whole load follows the one in parts.
    expect(
      Object.values(await bench.search.family(pipeline.index))
        .flat()
        .sort(),
    ).toEqual([pipeline.index, `${pipeline.index}__previous`]);
  });
});

describe("the previous index", () => {
  const restore = async (pipeline: Pipeline) => {
    await bench.store.requests.restore(pipeline.id);
    return bench.ended(pipeline);
  };

  it("comes back by one request, and goes again by another", async () => {
    const pipeline = await films(3);
    await bench.run(pipeline);
    expect(await restore(pipeline)).toMatchObject({ status: "FAILED", error_code: "NO_PREVIOUS_INDEX" });
    await bench.query("UPDATE content.film SET title = 'worse'");
    await bench.run(pipeline);
    expect((await bench.search.documents(pipeline.index)).get("1")).toMatchObject({ title: "worse" });
    expect(await restore(pipeline)).toMatchObject({
      status: "SUCCESS",
      strategy: "restore the previous index",
      rows_read: 0,
    });
    expect((await bench.search.documents(pipeline.index)).get("1")).toMatchObject({ title: "film 1" });
    expect(await restore(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect((await bench.search.documents(pipeline.index)).get("1")).toMatchObject({ title: "worse" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", strategy: "new index" });
    expect(Object.keys(await bench.search.family(pipeline.index))).toHaveLength(2);
  });

  it("is the one before an interrupted load, even if the load that follows it is interrupted, too", async () => {
    const pipeline = await films(500, { batch_size: 50 });
    await bench.run(pipeline);
    const whole = await bench.search.indexOf(pipeline.index);
    await runToPause(bench, pipeline);
    const comesTo = (status: string) =>
      until(`it is ${status}`, async () => (await bench.store.pipelines.get(pipeline.id)).status === status);
    // The rest takes seven batches: the others are of the load that follows.
    const forget = await pauseOnBatch(bench, pipeline, 12);
    await bench.store.requests.run(pipeline.id, "api");
    await comesTo("PAUSED");
    await forget();
    const { items } = await bench.store.runs.list(pipeline.id, { limit: 1 });
    expect(items).toMatchObject([{ trigger: "follow_up", status: "PAUSED" }]);
    await bench.store.requests.run(pipeline.id, "api");
    await comesTo("IDLE");
    expect((await bench.search.family(pipeline.index))[whole as string]).toEqual([`${pipeline.index}__previous`]);
    expect(await restore(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect(await bench.search.indexOf(pipeline.index)).toBe(whole);
  });
});

describe("an incremental load into an index", () => {
  it("R5.2 writes what changed, and leaves no field of the old document behind", async () => {
    const pipeline = await films(200, { ...INCREMENTAL, source_query: "SELECT id, title, modified FROM content.film" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 200, strategy: "upsert" });
    const index = await bench.search.indexOf(pipeline.index);
    await bench.query(
      "UPDATE content.film SET title = NULL, modified = clock_timestamp() + interval '1 s' WHERE id = 5",
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect((await bench.search.documents(pipeline.index)).get("5")).toMatchObject({ id: 5, title: null });
    expect(await bench.search.count(pipeline.index)).toBe(200);
    expect(await bench.search.indexOf(pipeline.index)).toBe(index);
  });

  it("deletes the documents of rows that say so", async () => {
    const pipeline = await films(20, {
      ...INCREMENTAL,
      source_query: "SELECT id, title, modified, gone FROM content.film",
      target_options: { delete_when: "gone" },
    });
    await bench.run(pipeline);
    await bench.query(
      "UPDATE content.film SET gone = true, modified = clock_timestamp() + interval '1 s' WHERE id <= 5",
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect([...(await bench.search.documents(pipeline.index)).keys()]).toHaveLength(15);
  });

  it("refuses a mapping that the index cannot become, before the first document", async () => {
    const pipeline = await films(20, { ...INCREMENTAL, source_query: "SELECT id, title, modified FROM content.film" });
    await bench.run(pipeline);
    await change(pipeline, { target_options: { mapping: { title: { type: "date" } } } });
    await bench.query("UPDATE content.film SET modified = clock_timestamp() + interval '1 s'");
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "FAILED", error_code: "INDEX_DIFFERS", rows_read: 0, rows_rejected: 0 });
    expect(run.error).toMatch(/mode full/);
  });

  it("refuses an index that another pipeline fills, until a full load takes it over", async () => {
    const first = await films(5, { ...INCREMENTAL, source_query: "SELECT id, title, modified FROM content.film" });
    await bench.run(first);
    const config = { target_table: first.target_table, target_key: ["id"], source_query: first.source_query };
    const second = await bench.create({ ...config, ...INCREMENTAL });
    expect(await bench.run(second)).toMatchObject({ status: "FAILED", error_code: "INDEX_DIFFERS" });
    await change(second, { mode: "full" });
    expect(await bench.run(second)).toMatchObject({ status: "SUCCESS" });
    await change(second, { mode: "incremental" });
    expect(await bench.run(second)).toMatchObject({ status: "SUCCESS" });
  });

  it("fills an index again that was deleted, replaced or emptied, once, and says why", async () => {
    const source_query = "SELECT id, title, modified FROM content.film";
    const pipeline = await films(20, { ...INCREMENTAL, source_query, add_columns: true });
    const { index } = pipeline;
    const ask = (method: string, path: string, body?: object) => bench.search.ask(method, path, body);
    const losses: Record<string, () => Promise<unknown>> = {
      "is gone": async () => ask("DELETE", `/${await bench.search.indexOf(index)}`),
      "is not the one": async () => {
        await ask("DELETE", `/${await bench.search.indexOf(index)}`);
        await ask("PUT", `/${index}__by_hand`, { aliases: { [index]: {} } });
      },
      "was emptied": async () => {
        for (const id of (await bench.search.documents(index)).keys()) await ask("DELETE", `/${index}/_doc/${id}`);
        await ask("POST", `/${index}/_refresh`);
        expect((await bench.search.documents(index)).size).toBe(0);
      },
    };
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 20, notes: [] });
    for (const [words, lose] of Object.entries(losses)) {
      await lose();
      const run = await bench.run(pipeline);
      expect(run).toMatchObject({ status: "SUCCESS", rows_written: 20 });
      expect(run.notes.join()).toContain(words);
      expect((await bench.search.documents(index)).size).toBe(20);
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", notes: [] });
    }
    await change(pipeline, { create_target: false });
    await losses["was emptied"]?.();
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TARGET_REPLACED" });
  });

  it("is not filled again when its own rows deleted every document", async () => {
    const pipeline = await films(20, {
      ...INCREMENTAL,
      source_query: "SELECT id, title, modified, gone FROM content.film",
      target_options: { delete_when: "gone" },
    });
    await bench.run(pipeline);
    await bench.query("UPDATE content.film SET gone = true, modified = clock_timestamp()");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", notes: [] });
    expect((await bench.search.documents(pipeline.index)).size).toBe(0);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", notes: [] });
  });

  it("says so when the index is ahead of a meta-store from a backup, instead of writing in vain for ever", async () => {
    const pipeline = await films(5, { ...INCREMENTAL, source_query: "SELECT id, title, modified FROM content.film" });
    await bench.query("UPDATE etl.etl_pipelines SET lease_epoch = 40 WHERE id = $1", [pipeline.id]);
    await bench.run(pipeline);
    await bench.query("UPDATE etl.etl_pipelines SET lease_epoch = 3 WHERE id = $1", [pipeline.id]);
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TARGET_AHEAD" });
    await bench.query("UPDATE etl.etl_state SET target_ahead = false");
    await bench.search.ask("POST", "/_aliases", {
      actions: [{ remove: { index: `${pipeline.index}__*`, alias: `${pipeline.index}__write_*` } }],
    });
    await bench.query("UPDATE content.film SET modified = clock_timestamp() + interval '1 s'");
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TARGET_AHEAD" });
    await bench.store.state.keep(pipeline.id);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  });
});

it("R4.6 a runner without a cluster keeps serving other pipelines, and the run says what to do", async () => {
  await bench.stopRunner();
  await bench.close();
  bench = await openSearchBench({
    ELASTICSEARCH_URL: "http://127.0.0.1:1",
    ELASTICSEARCH_PATIENCE_SECONDS: "2",
    RETRY_BACKOFF_SECONDS: "0",
  });
  await bench.startRunner();
  const away = await films(5, { retry_for_seconds: 0 });
  const here = await bench.create({ source_query: "SELECT id, title FROM content.film", target_key: ["id"] });
  await bench.store.requests.run(away.id, "api");
  expect(await bench.run(here)).toMatchObject({ status: "SUCCESS", rows_written: 5 });
  expect(await bench.store.pipelines.get(away.id)).toMatchObject({ status: "RUNNING" });
  const run = await bench.ended(away);
  expect(run).toMatchObject({ status: "FAILED", error_code: "SEARCH_UNAVAILABLE", attempt: 3 });
  expect(run.error).toMatch(/ELASTICSEARCH_URL/);
});

describe("a pipeline that is deleted", () => {
  it("leaves what is searched, and takes its unfinished load and its right to write along", async () => {
    const pipeline = await films(3000, { batch_size: 50, target_options: { keep_previous_hours: 0 } });
    await bench.run(pipeline);
    const live = (await bench.search.indexOf(pipeline.index)) as string;
    const { batchNo } = await bench.store.state.get(pipeline.id);
    await bench.store.requests.run(pipeline.id, "api");
    await until("batches are committed", async () => (await bench.store.state.get(pipeline.id)).batchNo >= batchNo + 2);
    await bench.store.requests.pause(pipeline.id);
    expect(await bench.ended(pipeline)).toMatchObject({ status: "PAUSED" });
    expect(Object.keys(await bench.search.family(pipeline.index))).toHaveLength(2);
    await bench.search.ask("PUT", `/${live}/_alias/${pipeline.index}__write_${pipeline.id}_1`);
    await bench.store.pipelines.delete(pipeline.id);
    const alone = JSON.stringify({ [live]: [pipeline.index] });
    await until(
      "only what is searched is left",
      async () => JSON.stringify(await bench.search.family(pipeline.index)) === alone,
    );
    expect(await bench.search.count(pipeline.index)).toBe(3000);
  });

  it("leaves the previous index until its time is over", async () => {
    const pipeline = await films(3);
    await bench.run(pipeline);
    await bench.run(pipeline);
    const before = await bench.search.family(pipeline.index);
    expect(Object.keys(before)).toHaveLength(2);
    await bench.store.pipelines.delete(pipeline.id);
    const due = "SELECT look_after > clock_timestamp() + interval '23 hours' AS later FROM etl.etl_abandoned_targets";
    await until("it was looked at", async () => (await bench.query(due))[0]?.["later"]);
    expect(await bench.search.family(pipeline.index)).toEqual(before);
    await bench.query(
      `UPDATE etl.etl_abandoned_targets SET look_after = now(), target_options = '{"keep_previous_hours": 0}'`,
    );
    await until("it is gone", async () => Object.keys(await bench.search.family(pipeline.index)).length === 1);
  });
});
