import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Run } from "../../src/domain/run.ts";
import { holdBatch, runToPause } from "../support/batches.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

let bench: Bench;

beforeEach(async () => {
  bench = await openBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

describe("a full load", () => {
  it("R5.1 writes what the query returns, and R5.3 a second run writes nothing", async () => {
    await bench.query(
      "CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, 2500) n",
    );
    const pipeline = await bench.create({
      source_query: "SELECT id, title FROM content.film",
      target_key: ["id"],
      batch_size: 1000,
    });
    expect(await bench.run(pipeline)).toMatchObject({
      status: "SUCCESS",
      rows_read: 2500,
      rows_written: 2500,
      batches: 3,
    });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 2500, rows_written: 0, rows_unchanged: 2500 });
    await bench.query("UPDATE content.film SET title = 'new' WHERE id % 100 = 0");
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 25, rows_unchanged: 2475 });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
  });

  it("creates the target with the query's types and key", async () => {
    await bench.query("CREATE TABLE content.film (id uuid, price numeric(7,2), tags text[], at timestamptz)");
    await bench.query(
      "INSERT INTO content.film VALUES (gen_random_uuid(), 12345.67, '{\"a, b\",NULL,\"\"}', '2024-01-01 00:00:00.123456+03')",
    );
    const pipeline = await bench.create({
      source_query: "SELECT id, price, tags, at FROM content.film",
      target_key: ["id"],
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
    const columns = await bench.query(
      `SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
        WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum`,
      [pipeline.target_table],
    );
    expect(columns.map(({ type }) => type)).toEqual(["uuid", "numeric(7,2)", "text[]", "timestamp with time zone"]);
  });

  it("takes names with capitals, spaces, quotes and other letters", async () => {
    await bench.query(`CREATE TABLE content."Фильм" ("Id ""x""" int, "название" text);
      INSERT INTO content."Фильм" VALUES (1, 'один'), (2, NULL)`);
    const pipeline = await bench.create({
      source_query: `SELECT "Id ""x""", "название" FROM content."Фильм" -- a comment`,
      target_table: `analytics."My ""Mart"""`,
      target_key: ['Id "x"'],
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 2 });
    expect(await bench.rowsOf(`analytics."My ""Mart"""`)).toEqual(await bench.rowsOf(`content."Фильм"`));
  });

  it("orders text keys by bytes, whatever the collation, and misses none across batches", async () => {
    await bench.query(`CREATE TABLE content.word AS SELECT w COLLATE "und-x-icu" AS word FROM unnest(
      ARRAY['a','A','b','B','_','é','z','Z','aa','aA','-','ж','Ж','','ß','ss','10','9']) w`);
    const pipeline = await bench.create({
      source_query: "SELECT word FROM content.word",
      target_key: ["word"],
      batch_size: 2,
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 18, rows_written: 18, batches: 9 });
  });

  it("keeps the last of several rows with one key in an incremental load, and counts the others", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT n / 2 AS id, n FROM generate_series(0, 9) n");
    const cursor = { mode: "incremental", incremental_key: "n", incremental_id_key: "id" };
    const pipeline = await bench.create({
      source_query: "SELECT id, n FROM content.film",
      target_key: ["id"],
      ...cursor,
    });
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 10, rows_written: 5, rows_deduplicated: 5 });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(["(0,1)", "(1,3)", "(2,5)", "(3,7)", "(4,9)"]);
  });

  it.each([
    ["by stream, within a batch", "", 1000],
    ["by stream, at the end of a batch", "", 500],
    ["by push-down, within a batch", "CREATE INDEX ON content.film (id)", 1000],
    ["by push-down, at the end of a batch", "CREATE INDEX ON content.film (id)", 500],
  ])("refuses a full load whose query returns a key twice, again and again, %s", async (path, index, batch_size) => {
    await bench.query(`CREATE TABLE content.film AS
      SELECT CASE n WHEN 501 THEN 500 ELSE n END AS id, n FROM generate_series(1, 3000) n; ${index}; ANALYZE content.film`);
    const pipeline = await bench.create({
      source_query: "SELECT id, n FROM content.film",
      target_key: ["id"],
      batch_size,
    });
    for (const _time of ["first", "second"]) {
      const run = await bench.run(pipeline);
      expect(run).toMatchObject({ status: "FAILED", error_code: "KEY_NOT_UNIQUE_IN_SOURCE" });
      expect(path).toContain(run.data_path);
    }
    await bench.query("DELETE FROM content.film WHERE n = 501");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 2999 });
  });
});

describe("a run that cannot succeed", () => {
  const failing: [string, object, string, RegExp][] = [
    ["a query that is wrong", { source_query: "SELECT nonsense FROM content.film" }, "SOURCE_QUERY_FAILED", /nonsense/],
    [
      "a second statement",
      { source_query: "SELECT 1 AS id; DROP TABLE content.film" },
      "QUERY_REFUSED",
      /column 17: a query is one statement/,
    ],
    [
      "a schema that is not allowed",
      { source_query: "SELECT id::text AS id FROM etl.etl_pipelines" },
      "QUERY_REFUSED",
      /etl\.etl_pipelines is outside/,
    ],
    ["a table it may not read", { source_query: "SELECT id FROM content.hidden" }, "PERMISSION_DENIED", /hidden/],
    [
      "a write",
      { source_query: "WITH x AS (DELETE FROM content.film RETURNING id) SELECT id FROM x" },
      "QUERY_REFUSED",
      /no DELETE/,
    ],
    ["a missing target", { create_target: false }, "TARGET_MISSING", /analytics/],
    ["no key", { target_key: [] }, "KEY_MISSING", /key/],
    ["a key that the query lacks", { target_key: ["other"] }, "KEY_NOT_IN_QUERY", /"other"/],
    [
      "two columns of one name",
      { source_query: "SELECT id, id FROM content.film" },
      "SOURCE_COLUMN_NAMES",
      /"id" twice/,
    ],
    ["a column without a name", { source_query: "SELECT id, 1 FROM content.film" }, "SOURCE_COLUMN_NAMES", /no name/],
    ["an unknown source", { source_connection: "elsewhere" }, "SOURCE_CONNECTION_UNKNOWN", /elsewhere/],
  ];
  it.each(failing)("says why: %s", async (_, config, code, sentence) => {
    await bench.query("CREATE TABLE content.film AS SELECT 1 AS id");
    await bench.query("CREATE TABLE content.hidden (id integer); REVOKE ALL ON content.hidden FROM vitrina_reader");
    const pipeline = await bench.create({ source_query: "SELECT id FROM content.film", target_key: ["id"], ...config });
    const failed = await bench.run(pipeline);
    expect(failed).toMatchObject({ status: "FAILED", error_code: code });
    expect(failed.error).toMatch(sentence);
    expect(failed.error).toMatch(/\. [A-Z].*\.$/s);
    expect(await bench.store.pipelines.get(pipeline.id)).toMatchObject({ status: "FAILED" });
    expect(await bench.rowsOf("content.film")).toEqual(["(1)"]);
  });

  it("names the column that the target lacks, before anything is read", async () => {
    await bench.query(
      "CREATE TABLE content.film AS SELECT 1 AS id, 2 AS extra; CREATE TABLE analytics.old (id int PRIMARY KEY)",
    );
    const pipeline = await bench.create({ source_query: "SELECT * FROM content.film", target_table: "analytics.old" });
    expect(await bench.run(pipeline)).toMatchObject({
      error_code: "TARGET_COLUMN_MISSING",
      error: expect.stringContaining('"extra"'),
    });
  });

  it("R4.5 never stops another pipeline", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT 1 AS id");
    const bad = await bench.create({ source_query: "SELECT 1/0 AS id", target_key: ["id"] });
    const good = await bench.create({ source_query: "SELECT id FROM content.film", target_key: ["id"] });
    await Promise.all([bad, good].map(({ id }) => bench.store.requests.run(id, "api")));
    expect(await bench.ended(bad)).toMatchObject({ status: "FAILED" });
    expect(await bench.ended(good)).toMatchObject({ status: "SUCCESS" });
  });

  it("does not cut a text that is too long, and keeps the target as it was", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT 1 AS id, 'too long' AS code");
    await bench.query("CREATE TABLE analytics.short (id int PRIMARY KEY, code varchar(3), note char(5))");
    const pipeline = await bench.create({
      source_query: "SELECT id, code FROM content.film",
      target_table: "analytics.short",
      max_rejects: 0,
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_REJECTS" });
    expect(await bench.rowsOf("analytics.short")).toEqual([]);
  });

  it("treats a padded column that did not change as unchanged", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT 1 AS id, 'ab' AS note");
    await bench.query("CREATE TABLE analytics.padded (id int PRIMARY KEY, note char(5))");
    const pipeline = await bench.create({
      source_query: "SELECT id, note FROM content.film",
      target_table: "analytics.padded",
    });
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 0, rows_unchanged: 1 });
  });
});

describe("pause and resume", () => {
  it("R4.3 stops after the current batch, and the next run reads only the rest", async () => {
    await bench.query(
      "CREATE TABLE content.film AS SELECT n AS id, md5(n::text) AS title FROM generate_series(1, 1000) n",
    );
    const pipeline = await bench.create({
      source_query: "SELECT id, title FROM content.film",
      target_key: ["id"],
      batch_size: 100,
    });
    const paused = await runToPause(bench, pipeline);
    expect([300, 400]).toContain(paused.rows_read);
    expect(await bench.store.state.get(pipeline.id)).toMatchObject({ scanPosition: [String(paused.rows_read)] });

    const resumed = await bench.run(pipeline);
    expect(resumed).toMatchObject({ status: "SUCCESS", rows_read: 1000 - paused.rows_read });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
    expect(await bench.store.state.get(pipeline.id)).toMatchObject({ scanPosition: null });
  });

  it("starts over when the query was changed meanwhile: the old position means nothing for it", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 1000) n");
    const pipeline = await bench.create({
      source_query: "SELECT id FROM content.film",
      target_key: ["id"],
      batch_size: 100,
    });
    await runToPause(bench, pipeline);
    await bench.store.pipelines.update(
      pipeline.id,
      { source_query: "SELECT id FROM content.film WHERE id <= 300" },
      { author: "test" },
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 300 });
  });

  it("hands a run back when it is stopped, and another runner goes on from the checkpoint", async () => {
    await bench.query("CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 1000) n");
    const pipeline = await bench.create({
      source_query: "SELECT id FROM content.film",
      target_key: ["id"],
      batch_size: 100,
    });
    const letGo = await holdBatch(bench, pipeline, 2);
    await bench.store.requests.run(pipeline.id, "api");
    await until("a batch is committed", async () => (await bench.store.state.get(pipeline.id)).batchNo >= 1);
    const stopping = bench.stopRunner();
    await letGo();
    await stopping;
    const [first] = (await bench.store.runs.list(pipeline.id, { limit: 1 })).items;
    expect(first).toMatchObject({ status: "HANDED_BACK" });
    expect(await bench.store.pipelines.get(pipeline.id)).toMatchObject({ status: "RUN_REQUESTED" });
    await bench.startRunner();
    const second = await bench.ended(pipeline);
    expect(second).toMatchObject({
      status: "SUCCESS",
      trigger: "recovery",
      rows_read: 1000 - (first as Run).rows_read,
    });
  });
});
