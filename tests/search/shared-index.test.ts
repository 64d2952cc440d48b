import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { IndexOptions } from "../../src/connectors/elasticsearch/options.ts";
import type { SinkRequest, SinkWriter } from "../../src/connectors/sink.ts";
import type { Row } from "../../src/domain/row.ts";
import { commitBegin, commitFinish, commitGiveUp, commitRows, GUARD } from "../support/commit.ts";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";
import { searchClaims } from "../support/search-claims.ts";
import { type FaultProxy, startFaultProxy } from "../support/search-fault-proxy.ts";
import { until } from "../support/until.ts";

/** An index that others write to, or have made. */
let bench: SearchBench;
let proxy: FaultProxy;
beforeEach(async () => {
  bench = await openSearchBench();
  proxy = await startFaultProxy(bench.search.url);
});
afterEach(async () => {
  await proxy.close();
  await bench.close();
});

const ask = (method: string, path: string, body?: object) => bench.search.ask(method, path, body);
const update = (index: string, id: string, doc: object) => ask("POST", `/${index}/_update/${id}`, { doc });

async function createFilms(count: number): Promise<void> {
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title, '{"a": 1, "b": 2}'::jsonb AS facts,
       clock_timestamp() AS modified FROM generate_series(1, ${count}) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
}
const FILMS = {
  source_query: "SELECT id, title, facts, modified FROM content.film",
  target_key: ["id"],
  mode: "incremental",
  incremental_key: "modified",
  incremental_id_key: "id",
};

/** Claims of one pipeline, each as a runner of its own would make it. */
function claims(index: string, options: IndexOptions, load: SinkRequest["load"]) {
  const claimNext = searchClaims();
  return async (url = bench.search.url): Promise<{ writer: SinkWriter; write(rows: Row[]): Promise<unknown> }> => {
    const writer = await claimNext({ url, index, load, options });
    return { writer, write: (rows) => commitRows(writer, rows) };
  };
}
const begin = ({ writer }: { writer: SinkWriter }) => commitBegin(writer);
const finish = ({ writer }: { writer: SinkWriter }) => commitFinish(writer);

describe("fields that others added", () => {
  const rate = (index: string) => ask("PUT", `/${index}/_mapping`, { properties: { rating: { type: "long" } } });

  it("R5.2 stay where the pipeline merges, exactly as they were written, and go where it replaces", async () => {
    await createFilms(3);
    await bench.startRunner();
    const merging = await bench.createIndex({ ...FILMS, target_options: { write: "merge" } });
    const replacing = await bench.createIndex(FILMS);
    for (const { index, ...pipeline } of [merging, replacing]) {
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 3 });
      await rate(index);
      // Longer than JavaScript can count, and on several lines.
      const document = '{"id": 1,\n"title": "theirs",\r\n"rating" : 9007199254740993\n}';
      await fetch(`${bench.search.url}/${index}/_doc/1`, {
        method: "PUT",
        body: document,
        headers: { "content-type": "application/json" },
      });
      await update(index, "2", { rating: 5 });
    }
    await bench.query(
      `UPDATE content.film SET title = NULL, facts = '{"b": 3}', modified = clock_timestamp() + interval '1 s'`,
    );
    for (const pipeline of [merging, replacing]) {
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 3, rows_rejected: 0 });
    }
    const exact = await fetch(`${bench.search.url}/${merging.index}/_doc/1`);
    expect(await exact.text()).toContain('"rating":9007199254740993');
    const merged = await bench.search.documents(merging.index);
    expect(merged.get("2")).toMatchObject({ id: 2, title: null, facts: { b: 3 }, rating: 5 });
    expect((merged.get("2") as { facts: object }).facts).toEqual({ b: 3 });
    expect(merged.get("3")).not.toHaveProperty("rating");
    expect((await bench.search.documents(replacing.index)).get("2")).not.toHaveProperty("rating");
  });

  it("stay also when they are written between the reading and the writing of a document, or before its first", async () => {
    const { index } = await bench.createIndex(FILMS);
    const claim = claims(index, { write: "merge" }, { kind: "upsert" });
    const first = await claim(proxy.url);
    await begin(first);
    await first.write([["1", "a"]]);
    await rate(index);
    proxy.next("late");
    const late = first.write([
      ["1", "b"],
      ["2", "b"],
    ]);
    await until("its request is on its way", () => proxy.happened.includes("late"));
    await update(index, "1", { rating: 4 });
    await ask("PUT", `/${index}/_doc/2`, { rating: 5 });
    const { items } = JSON.parse(await proxy.release()) as { items: Record<string, { status: number }>[] };
    expect(items.map((item) => Object.values(item)[0]?.status)).toEqual([409, 409]);
    expect(await late).toMatchObject({ rows_written: 2, rejects: [] });
    expect(Object.fromEntries(await bench.search.documents(index))).toEqual({
      1: { id: 1, title: "b", rating: 4 },
      2: { id: 2, title: "b", rating: 5 },
    });
  });

  it("R4.7 a runner that lost the pipeline cannot merge into what its successor wrote, however late it is", async () => {
    const { index } = await bench.createIndex(FILMS);
    const claim = claims(index, { write: "merge" }, { kind: "upsert" });
    const stale = await claim(proxy.url);
    await begin(stale);
    await stale.write([["1", "old"]]);
    const owner = await claim();
    const rows = (title: string): Row[] => ["1", "2"].map((id) => [id, title]);
    proxy.next("late");
    const late = stale.write(rows("stale")).catch((error: unknown) => error);
    await until("its request is on its way", () => proxy.happened.includes("late"));
    // The first as it is already: also what changes nothing must shut the late one out.
    await owner.write([
      ["1", "old"],
      ["2", "new"],
    ]);
    const { items } = JSON.parse(await proxy.release()) as { items: Record<string, { status: number }>[] };
    expect(items.map((item) => Object.values(item)[0]?.status)).toEqual([409, 409]);
    expect(await late).toMatchObject({ code: "LEASE_LOST" });
    expect(Object.fromEntries(await bench.search.documents(index))).toEqual({
      1: { id: 1, title: "old" },
      2: { id: 2, title: "new" },
    });
  });
});

describe("an index of the target's name", () => {
  const OLD = { title: "of somebody" };
  async function plainIndex(documents: number): Promise<string> {
    const { index } = await bench.createIndex(FILMS);
    for (let id = 1; id <= documents; id++) await ask("PUT", `/${index}/_doc/${id}?refresh=true`, OLD);
    return index;
  }

  it("is refused with the way out; adopted, it gives way to an alias once the load is complete", async () => {
    await createFilms(5);
    await bench.startRunner();
    const pipeline = await bench.createIndex({ ...FILMS, mode: "full" });
    const { index } = pipeline;
    for (const id of [1, 2, 3]) await ask("PUT", `/${index}/_doc/${id}?refresh=true`, OLD);
    const before = await bench.search.documents(index);
    const refused = await bench.run(pipeline);
    expect(refused).toMatchObject({ status: "FAILED", error_code: "INDEX_NOT_AN_ALIAS" });
    expect(refused.error).toMatch(/target_options\.adopt/);
    const change = (patch: object) => bench.store.pipelines.update(pipeline.id, patch, { author: "test" });
    await change({ target_options: { adopt: true }, mode: "incremental" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "INDEX_NOT_AN_ALIAS" });
    expect(await bench.search.documents(index)).toEqual(before);

    await change({ mode: "full" });
    const answers = new Set<number>();
    let isOver = false;
    const watching = (async () => {
      while (!isOver) answers.add((await fetch(`${bench.search.url}/${index}`, { method: "HEAD" })).status);
    })();
    const run = await bench.run(pipeline);
    isOver = true;
    await watching;
    expect([...answers]).toEqual([200]);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 5 });
    expect(run.notes.join()).toMatch(/gives way to an alias/);
    expect(Object.values(await bench.search.family(index))).toEqual([[index]]);
    expect(await bench.search.count(index)).toBe(5);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", notes: [] });
    await change({ mode: "incremental" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  });

  it("stays as it is while the load runs, where too much would be deleted, and before a runner that is late", async () => {
    const index = await plainIndex(3);
    const claim = claims(index, { adopt: true }, { kind: "replace", loadId: randomUUID(), inKeyOrder: false });
    const few = await claim();
    await begin(few);
    await few.write([["1", "a"]]);
    await expect(finish(few)).rejects.toMatchObject({ code: "TOO_MANY_DELETIONS" });
    await commitGiveUp(few.writer);

    const stale = await claim();
    await begin(stale);
    await stale.write(["1", "2", "3"].map((id) => [id, "stale"]));
    const late = await stale.writer.finish(GUARD);
    const owner = await claim();
    await owner.write([["4", "new"]]);
    await expect(late.commit()).rejects.toMatchObject({ code: "SEARCH_BUSY" });
    expect(Object.keys(await bench.search.family(index))).toContain(index);
    expect([...(await bench.search.documents(index)).values()]).toEqual([OLD, OLD, OLD]);
    // The second time as if no answer had come to the first.
    const finished = await owner.writer.finish(GUARD);
    await finished.commit();
    await finished.commit();
    // Nor is it given up when its runner does not know that it is visible.
    await commitGiveUp(owner.writer);
    expect(await bench.search.indexOf(index)).toMatch(`${index}__`);
    expect(await bench.search.count(index)).toBe(4);
  });
});
