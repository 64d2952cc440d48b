import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import { CINEMA, FILM_MART, reasonOf, violations } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { type RecordingLog, recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** Sweeps compare a whole target with its query, and repair it. */

let bench: Bench;
let log: RecordingLog;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(CINEMA);
  log = recordingLog();
  await bench.startRunner(log);
});
afterAll(() => bench.close());

/** As if the sweep were due now. */
async function swept(pipeline: Pipeline): Promise<Run> {
  const { lastSweepAt } = await bench.store.follow.get(pipeline.id);
  await until("the sweep is planned", async () => (await bench.store.follow.get(pipeline.id)).nextSweepAt ?? undefined);
  await bench.query("UPDATE etl.etl_pipelines SET next_sweep_at = now() - interval '1 minute' WHERE id = $1", [
    pipeline.id,
  ]);
  await bench.query("SELECT pg_notify('vitrina_pipelines', '')");
  await until("the sweep has ended", async () => {
    const state = await bench.store.follow.get(pipeline.id);
    return state.lastSweepAt?.getTime() === lastSweepAt?.getTime() ? undefined : true;
  });
  return bench.ended(pipeline);
}

describe("a sweep of a mart that follows", () => {
  let films: Pipeline;
  beforeAll(async () => {
    films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 3600 }, sweep: "7d" });
    await bench.run(films);
  });

  it("follows what is pending, finds nothing else, and writes nothing", async () => {
    await bench.query("UPDATE content.film SET title = 'pending' WHERE id = 1");
    // The watcher, which has just learned of this mart, may have followed the change before, or started the run that sweeps.
    const run = await swept(films);
    expect(run).toMatchObject({ status: "SUCCESS", rows_deleted: 0 });
    expect(["sweep", "change"]).toContain(run.trigger);
    expect(run.rows_written).toBeLessThanOrEqual(1);
    expect(await bench.store.follow.get(films.id)).toMatchObject({ repaired: 0, sweepWanted: false });
    expect(await violations(bench, films)).toEqual([]);
  });

  it("repairs what differs, counts it, and tells its keys and columns", async () => {
    await bench.query(`UPDATE ${films.target_table} SET title = 'tampered' WHERE film_id = 2;
      DELETE FROM ${films.target_table} WHERE film_id = 3;
      INSERT INTO ${films.target_table} VALUES (-1, 'made up', NULL)`);
    await bench.query("UPDATE content.film SET title = 'pending again' WHERE id = 4");
    const run = await swept(films);
    expect(reasonOf(run)).toMatch(/A sweep found 3 rows that differ although every change had been followed\./);
    expect(run).toMatchObject({ trigger: "sweep", status: "SUCCESS", rows_written: 3, rows_deleted: 1 });
    expect(await bench.store.follow.get(films.id)).toMatchObject({
      repaired: 3,
      lastRepaired: 3,
      comparePosition: null,
    });
    expect(await violations(bench, films)).toEqual([]);
    const told = log.entries.find(({ message }) => message.startsWith("sweep found rows that differ"));
    expect(told?.fields).toMatchObject({
      repaired: 3,
      missing: { count: 1, keys: [{ film_id: "3" }] },
      extra: { count: 1, keys: [{ film_id: "-1" }] },
      different: { count: 1, keys: [{ key: { film_id: "2" }, columns: ["title"] }] },
    });
    await swept(films);
    expect(await bench.store.follow.get(films.id)).toMatchObject({ repaired: 3, lastRepaired: 0 });
  });

  it("does not take rows that the target refuses for differences", async () => {
    await bench.query(`CREATE TABLE analytics.checked (film_id bigint PRIMARY KEY, title varchar(10) CHECK (title <> 'bad'), genres text);
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.checked TO vitrina_writer`);
    const checked = await bench.create({
      ...FILM_MART,
      target_table: "analytics.checked",
      follow: { check_every_seconds: 3600 },
      sweep: "7d",
    });
    await bench.query(
      "UPDATE content.film SET title = 'bad' WHERE id = 9; UPDATE content.film SET title = 'much too long for it' WHERE id = 10",
    );
    await bench.query("UPDATE content.film SET title = 'short' WHERE id IN (1, 4)");
    expect(await bench.run(checked)).toMatchObject({ status: "SUCCESS", rows_rejected: 2 });
    await swept(checked);
    expect(await bench.store.follow.get(checked.id)).toMatchObject({ repaired: 0 });
  });

  it("knows them by their keys as they were read, also where a cast gives another text", async () => {
    await bench.query(`CREATE TABLE content.flagged AS SELECT n AS id, n % 2 = 0 AS main, CASE n WHEN 9 THEN 'bad' ELSE 'good' END AS title
        FROM generate_series(1, 10) n;
      CREATE TABLE analytics.flagged (id int, main boolean, title text CHECK (title <> 'bad'), PRIMARY KEY (id, main));
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.flagged TO vitrina_writer`);
    const flagged = await bench.create({
      source_query: "SELECT id, main, title FROM content.flagged",
      target_table: "analytics.flagged",
      target_key: ["id", "main"],
      mode: "follow",
      follow: { check_every_seconds: 3600 },
      sweep: "7d",
    });
    expect(await bench.run(flagged)).toMatchObject({ status: "SUCCESS", rows_rejected: 1 });
    await swept(flagged);
    expect(await bench.store.follow.get(flagged.id)).toMatchObject({ repaired: 0 });
  });
});

describe("a sweep in parts", () => {
  let films: Pipeline;
  const next = async () => (await bench.store.follow.get(films.id)).sweepNext;
  const comparedRows = (): unknown[] =>
    log.entries
      .filter(({ message }) => message === "sweep found no difference")
      .map(({ fields }) => (fields as Record<string, unknown>)["rows_compared"]);

  beforeAll(async () => {
    await bench.query(`CREATE TABLE content.reel (id bigint, side text, title text, PRIMARY KEY (id, side));
      INSERT INTO content.reel SELECT n / 2, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'reel ' || n FROM generate_series(0, 299) n`);
    films = await bench.create({
      source_query: "SELECT id, side, title FROM content.reel",
      target_key: ["id", "side"],
      mode: "follow",
      follow: { check_every_seconds: 3600, sweep_parts: 3 },
      sweep: "7d",
    });
    await bench.run(films);
  });

  it("compares a range of keys at a time, and everything in so many sweeps, however the mart grows", async () => {
    const before = comparedRows().length;
    await swept(films);
    expect(await next()).toEqual({ after: ["49", "b"], parts: 2 });
    await bench.query("INSERT INTO content.reel SELECT n, 'a', 'late ' || n FROM generate_series(1000, 1399) n");
    await swept(films);
    expect(await next()).toEqual({ after: ["1099", "a"], parts: 1 });
    await bench.query("INSERT INTO content.reel SELECT n, 'a', 'later ' || n FROM generate_series(2000, 2399) n");
    await swept(films);
    expect(await next()).toBeNull();
    expect(comparedRows().slice(before)).toEqual([100, 300, 700]);
    expect(await bench.store.follow.get(films.id)).toMatchObject({ repaired: 0 });
    expect(await violations(bench, films)).toEqual([]);
  });

  it("finds what differs when it comes to it: a row that is missing, another one, one too many", async () => {
    const { target_table: mart } = films;
    for (const tampering of [
      `DELETE FROM ${mart} WHERE id = 1200`,
      `UPDATE ${mart} SET title = 'tampered' WHERE id = 1200`,
      `INSERT INTO ${mart} VALUES (1200, 'z', 'made up')`,
      `INSERT INTO ${mart} VALUES (5000, 'z', 'made up, and the last')`,
    ]) {
      const { repaired } = await bench.store.follow.get(films.id);
      await bench.query(tampering);
      await swept(films);
      expect(await bench.store.follow.get(films.id), tampering).toMatchObject({ repaired });
      for (let sweeps = 1; (await next()) !== null && sweeps < 3; sweeps += 1) await swept(films);
      expect(await bench.store.follow.get(films.id), tampering).toMatchObject({ repaired: repaired + 1 });
      expect(await violations(bench, films)).toEqual([]);
    }
  });

  it("compares the whole where the target has another order than the source", async () => {
    await bench.query(`CREATE TYPE content.grade AS ENUM ('low', 'high');
      CREATE TABLE content.graded AS SELECT g AS grade, 'x' AS title FROM unnest('{low,high}'::content.grade[]) g;
      CREATE TABLE analytics.graded (grade text PRIMARY KEY, title text);
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.graded TO vitrina_writer`);
    const graded = await bench.create({
      source_query: "SELECT grade, title FROM content.graded",
      target_table: "analytics.graded",
      target_key: ["grade"],
      mode: "follow",
      follow: { check_every_seconds: 3600, sweep_parts: 2 },
      sweep: "7d",
    });
    await bench.run(graded);
    await swept(graded);
    expect(await bench.store.follow.get(graded.id)).toMatchObject({ repaired: 0, sweepNext: null });
  });

  it("starts over when everything was compared for another reason", async () => {
    await swept(films);
    expect(await next()).not.toBeNull();
    await bench.query("TRUNCATE content.reel; INSERT INTO content.reel VALUES (1, 'a', 'one')");
    await bench.store.pipelines.update(films.id, { max_delete_percent: 100 }, { author: "test" });
    await bench.run(films);
    expect(await next()).toBeNull();
    expect(await violations(bench, films)).toEqual([]);
  });
});

describe("a sweep of an incremental pipeline", () => {
  it("brings deletions and unseen changes, and leaves the watermark as it is", async () => {
    await bench.query(`CREATE TABLE content.stamped (id bigint PRIMARY KEY, title text, modified timestamptz DEFAULT now());
      INSERT INTO content.stamped SELECT n, 'row ' || n, '2020-01-01'::timestamptz + n * interval '1 day' FROM generate_series(1, 50) n`);
    const rows = await bench.create({
      source_query: "SELECT id, title, modified FROM content.stamped",
      target_key: ["id"],
      mode: "incremental",
      incremental_key: "modified",
      sweep: "1d",
    });
    await bench.run(rows);
    const { watermark } = await bench.store.state.get(rows.id);
    await bench.query(
      "DELETE FROM content.stamped WHERE id <= 10; UPDATE content.stamped SET title = 'unseen' WHERE id = 20",
    );
    expect(await bench.run(rows)).toMatchObject({ status: "SUCCESS", rows_deleted: 0 });
    expect(await violations(bench, rows)).not.toEqual([]);
    expect(await swept(rows)).toMatchObject({ trigger: "sweep", status: "SUCCESS", rows_written: 1, rows_deleted: 10 });
    expect(await violations(bench, rows)).toEqual([]);
    expect((await bench.store.state.get(rows.id)).watermark).toEqual(watermark);
    await bench.query("INSERT INTO content.stamped VALUES (99, 'later')");
    expect(await bench.run(rows)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
  });
});
