import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CINEMA, FILM_MART, reasonOf } from "../support/followed-marts.ts";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";
import { until } from "../support/until.ts";

/** A search index that follows every change: deletes and moves reach it, and everything is compared by a new index. */

let bench: SearchBench;
let films: Awaited<ReturnType<SearchBench["createIndex"]>>;
beforeAll(async () => {
  bench = await openSearchBench();
  await bench.query(CINEMA);
  await bench.startRunner();
  films = await bench.createIndex({ ...FILM_MART, follow: { check_every_seconds: 3600 }, sweep: "7d" });
});
afterAll(() => bench.close());

async function requireEqual(): Promise<void> {
  const wanted = await bench.query(`SELECT film_id::int, title, genres FROM (${films.source_query}) AS q`);
  const found = await bench.search.documents(films.index);
  expect([...found.values()].sort(byId)).toEqual(wanted.sort(byId));
}

const byId = (a: unknown, b: unknown): number =>
  (a as { film_id: number }).film_id - (b as { film_id: number }).film_id;

describe("an index that follows", () => {
  it("is filled at first, and then follows changes, moves and deletes by their keys", async () => {
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", error: null, rows_written: 200 });
    await requireEqual();
    await bench.query(`UPDATE content.film SET title = 'other' WHERE id = 1;
      DELETE FROM content.film WHERE id = 2;
      UPDATE content.film SET id = 500 WHERE id = 3;
      INSERT INTO content.film VALUES (600, 'new');
      UPDATE content.genre SET name = 'drama' WHERE id = 5`);
    const run = await bench.run(films);
    expect(run).toMatchObject({ status: "SUCCESS", strategy: "follow", data_path: "rows", rows_deleted: 2 });
    expect(reasonOf(run)).toBeUndefined();
    await requireEqual();
  });

  it("refuses too many deletions before the first", async () => {
    await bench.query("CREATE TABLE public.kept AS TABLE content.film; DELETE FROM content.film WHERE id > 50");
    expect(await bench.run(films)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS", batches: 0 });
    await bench.query("INSERT INTO content.film SELECT * FROM public.kept WHERE id > 50");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS" });
    await requireEqual();
  });

  it("compares everything when a table was truncated, or the index is gone, and goes on following", async () => {
    await bench.query("TRUNCATE content.film_genre; INSERT INTO content.film_genre VALUES (1, 1), (5, 5)");
    expect(reasonOf(await bench.run(films))).toMatch(/film_genre/);
    await requireEqual();
    await bench.search.drop(films.index);
    expect(reasonOf(await bench.run(films))).toMatch(/is gone/);
    await requireEqual();
    await bench.query("DELETE FROM content.film WHERE id = 7");
    expect(await bench.run(films)).toMatchObject({ strategy: "follow", rows_deleted: 1 });
    await requireEqual();
  });

  it("is swept: what somebody else changed is found and repaired", async () => {
    await bench.search.ask("POST", `/${films.index}/_update/5`, { doc: { title: "tampered" } });
    await bench.search.ask("DELETE", `/${films.index}/_doc/6?refresh=true`);
    await bench.query("UPDATE etl.etl_pipelines SET sweep_wanted_at = now() WHERE id = $1", [films.id]);
    await bench.run(films);
    await until("the sweep has ended", async () => !(await bench.store.follow.get(films.id)).sweepWanted);
    await bench.ended(films);
    expect(await bench.store.follow.get(films.id)).toMatchObject({ repaired: 2, lastRepaired: 2 });
    await requireEqual();
    await bench.query("UPDATE content.film SET title = 'after the sweep' WHERE id = 8");
    expect(await bench.run(films)).toMatchObject({ strategy: "follow", rows_written: 1 });
    await requireEqual();
  });
});

describe("an index whose key has another text when it is cast", () => {
  it.each([
    ["boolean", "flag", ["true", "false"], "t"],
    ["character(3)", "padded", ["'DE'", "'FR'"], "DE "],
    ["inet", "address", ["'10.0.0.1'", "'10.0.0.2'"], "10.0.0.1"],
  ])("of type %s loses the documents of the rows that are gone", async (type, name, [first, second], text) => {
    await bench.query(`CREATE TABLE content.of_${name} (id bigint, part ${type}, note text, PRIMARY KEY (id, part));
      INSERT INTO content.of_${name} SELECT n, ${first}, 'note' FROM generate_series(1, 20) n;
      INSERT INTO content.of_${name} VALUES (1, ${second}, 'note')`);
    const mart = await bench.createIndex({
      source_query: `SELECT id, part, note FROM content.of_${name}`,
      target_key: ["id", "part"],
      mode: "follow",
      follow: { check_every_seconds: 3600 },
      max_delete_percent: 20,
    });
    const ids = async () => [...(await bench.search.documents(mart.index)).keys()];
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null, rows_written: 21 });
    expect(await ids()).toContain(JSON.stringify(["1", text]));
    await bench.query(`DELETE FROM content.of_${name} WHERE id = 1 AND part = ${first}`);
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null, rows_deleted: 1 });
    expect(await ids()).toHaveLength(20);
    expect(await ids()).not.toContain(JSON.stringify(["1", text]));
    // The guard must know which documents would go.
    await bench.query(`DELETE FROM content.of_${name} WHERE id > 10`);
    expect(await bench.run(mart)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS" });
  });
});
