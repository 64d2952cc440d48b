import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Reconcile, ReconcileReport } from "../../src/domain/reconcile.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** Source and target are compared by a real runner; every fault is put into the target, or the source, by hand. */

let bench: Bench;
let folder: string;

const TASKS = `export default ({ defineTask, z }) => [
  defineTask({ name: "copy", description: "d", params: z.strictObject({}), run: (rows) => rows.map((row) => ({ ...row })) }),
  defineTask({ name: "negate", description: "Makes the key.", params: z.strictObject({}),
    run: (rows) => rows.map((row) => ({ ...row, id: -row.id })) })];`;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-reconcile-"));
  await writeFile(join(folder, "tasks.mjs"), TASKS);
  bench = await openBench({ TASKS_DIR: folder });
  await bench.startRunner();
});
afterEach(async () => {
  await bench.close();
  await rm(folder, { recursive: true });
});

async function ended(pipeline: Pipeline, id: string): Promise<Reconcile> {
  return until("the reconcile ends", async () => {
    const found = await bench.store.reconciles.get(pipeline.id, id);
    return ["WAITING", "RUNNING"].includes(found.status) ? undefined : found;
  });
}

async function reconcile(pipeline: Pipeline): Promise<Reconcile & { report: ReconcileReport }> {
  const { id } = await bench.store.reconciles.request(pipeline.id, "test");
  const done = await ended(pipeline, id);
  if (done.report === null) throw new Error(`There is no report: ${done.error}`);
  return done as Reconcile & { report: ReconcileReport };
}

/** A target that was loaded and agrees. */
async function loaded(config: object): Promise<Pipeline> {
  const pipeline = await bench.create(config);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  expect(await reconcile(pipeline)).toMatchObject({ status: "MATCH" });
  return pipeline;
}

const ids = (...numbers: number[]) => numbers.map((id) => ({ id: String(id) }));

const FILMS = `CREATE TABLE content.film AS
  SELECT n AS id, 'film ' || n AS title, CASE WHEN n % 7 > 0 THEN '' END AS note, (n % 100)::numeric / 10 AS rating,
         '2020-01-01 00:00:00.000001+00'::timestamptz + n * interval '1 microsecond' AS modified
    FROM generate_series(1, 1000) n;
  CREATE INDEX ON content.film (modified, id)`;
const QUERY = "SELECT id, title, note, rating, modified FROM content.film";
const FULL = { source_query: QUERY, target_key: ["id"], batch_size: 150 };
const INCREMENTAL = { ...FULL, mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
const plan = (...tasks: string[]): object => ({
  ...FULL,
  source_query: "",
  tasks: [QUERY, ...tasks].map((body, index) => ({
    order_index: index + 1,
    task_type: index === 0 ? "SQL" : "TYPESCRIPT",
    body,
  })),
});

describe("a reconcile", () => {
  beforeEach(() => bench.query(FILMS));

  it("R7 finds nothing where nothing is, and tells counts and ranges of both sides", async () => {
    const pipeline = await loaded({ ...FULL, incremental_key: "modified" });
    const { status, report, rows_compared, config_version } = await reconcile(pipeline);
    const range = {
      rows: 1000,
      key_min: { id: "1" },
      key_max: { id: "1000" },
      incremental_key_min: "2020-01-01 00:00:00.000002+00",
      incremental_key_max: "2020-01-01 00:00:00.001001+00",
    };
    expect({ status, rows_compared, config_version }).toEqual({
      status: "MATCH",
      rows_compared: 1000,
      config_version: 1,
    });
    expect(report).toEqual({
      source: { rows_read: 1000, rows_duplicate: 0, rows_refused: 0, ...range },
      target: range,
      missing: { count: 0, keys: [] },
      extra: { count: 0, keys: [] },
      different: { count: 0, keys: [] },
      pending: { count: 0, keys: [] },
      compared_columns: ["id", "title", "note", "rating", "modified"],
      passes: 1,
      notes: [],
    });
  });

  it.each([
    ["full, streamed", FULL],
    ["incremental", INCREMENTAL],
    ["through a code task", plan("copy")],
  ])("R7 finds exactly the faults that were put in: %s", async (_, config) => {
    const pipeline = await loaded(config);
    await bench.query(`
      DELETE FROM ${pipeline.target_table} WHERE id IN (1, 500, 1000);
      INSERT INTO ${pipeline.target_table} SELECT n, 'nobody', NULL, 1, now() FROM unnest(ARRAY[-5, 2001]) n;
      UPDATE ${pipeline.target_table} SET title = title || ' ' WHERE id = 10;
      UPDATE ${pipeline.target_table} SET note = NULL WHERE id = 11;
      UPDATE ${pipeline.target_table} SET note = '' WHERE id = 14;
      UPDATE ${pipeline.target_table} SET modified = modified + interval '1 microsecond', rating = 99 WHERE id = 12`);
    const { status, report } = await reconcile(pipeline);
    expect(status).toBe("DIFFERENT");
    expect(report.missing).toEqual({ count: 3, keys: ids(1, 500, 1000) });
    expect(report.extra).toEqual({ count: 2, keys: ids(-5, 2001) });
    expect(report.different).toEqual({
      count: 4,
      keys: [
        { key: { id: "10" }, columns: ["title"] },
        { key: { id: "11" }, columns: ["note"] },
        { key: { id: "12" }, columns: ["rating", "modified"] },
        { key: { id: "14" }, columns: ["note"] },
      ],
    });
    expect(report.target).toMatchObject({ rows: 999, key_min: { id: "-5" }, key_max: { id: "2001" } });
  });

  it("R7 counts all and lists the first, in the order of the key", async () => {
    const pipeline = await loaded(FULL);
    await bench.query(
      `UPDATE ${pipeline.target_table} SET title = 'other'; DELETE FROM ${pipeline.target_table} WHERE id > 600`,
    );
    const { report } = await reconcile(pipeline);
    expect(report.different.count).toBe(600);
    expect(report.missing).toEqual({ count: 400, keys: ids(...Array.from({ length: 100 }, (_, n) => 601 + n)) });
    expect(report.different.keys.map(({ key }) => key)).toEqual(ids(...Array.from({ length: 100 }, (_, n) => n + 1)));
  });

  it("R7 changes nothing: not the target, not the pipeline", async () => {
    const pipeline = await loaded(FULL);
    await bench.query(`UPDATE ${pipeline.target_table} SET title = 'other' WHERE id < 50`);
    const trace = () =>
      bench.query(`SELECT (SELECT json_agg(row(t.xmin, t.ctid, t)) FROM ${pipeline.target_table} t)::text AS rows,
        (SELECT json_agg(row(p.xmin, p)) FROM etl.etl_pipelines p)::text AS pipelines,
        (SELECT json_agg(row(s.xmin, s)) FROM etl.etl_state s)::text AS states,
        (SELECT json_agg(relname) FROM pg_class WHERE relnamespace = 'analytics'::regnamespace)::text AS tables`);
    const before = await trace();
    expect(await reconcile(pipeline)).toMatchObject({ status: "DIFFERENT" });
    expect(await trace()).toEqual(before);
  });

  it("R7 compares keys that a code task makes", async () => {
    const pipeline = await loaded(plan("negate"));
    await bench.query(`DELETE FROM ${pipeline.target_table} WHERE id = -7`);
    expect((await reconcile(pipeline)).report.missing).toEqual({ count: 1, keys: ids(-7) });
  });

  it("R7 rows behind the watermark are pending, not missing", async () => {
    const pipeline = await loaded(INCREMENTAL);
    await bench.query(`
      INSERT INTO content.film VALUES (5000, 'new', NULL, 1, now());
      UPDATE content.film SET title = 'changed', modified = now() WHERE id = 3`);
    const first = await reconcile(pipeline);
    expect(first).toMatchObject({ status: "MATCH", report: { pending: { count: 2, keys: ids(3, 5000) } } });
    expect(first.report.notes).toEqual([expect.stringContaining("the next run reads them")]);
    await bench.run(pipeline);
    expect(await reconcile(pipeline)).toMatchObject({ status: "MATCH", report: { pending: { count: 0 } } });
  });

  it("R7 shows what an incremental load cannot see: deletions, and changes without a stamp", async () => {
    const pipeline = await loaded(INCREMENTAL);
    await bench.query("DELETE FROM content.film WHERE id = 4; UPDATE content.film SET title = 'x' WHERE id = 5");
    const { status, report } = await reconcile(pipeline);
    expect(status).toBe("DIFFERENT");
    expect(report.extra).toEqual({ count: 1, keys: ids(4) });
    expect(report.different).toEqual({ count: 1, keys: [{ key: { id: "5" }, columns: ["title"] }] });
    expect(report.notes).toEqual([expect.stringContaining("deleted"), expect.stringContaining("watermark")]);
  });

  it("R7 before the first incremental run everything is pending", async () => {
    const pipeline = await bench.create({ ...INCREMENTAL, create_target: false });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text, note text, rating numeric, modified timestamptz)`,
    );
    expect(await reconcile(pipeline)).toMatchObject({ status: "MATCH", report: { pending: { count: 1000 } } });
  });
});

describe("values", () => {
  it("R7 are equal when a load would leave them alone: after the conversion to the target's type", async () => {
    await bench.query(`CREATE TABLE content.price (id int, free numeric, fixed numeric(9,1), big int, code varchar(9), at timestamp);
      INSERT INTO content.price VALUES (1, 1.0, 1.0, 7, 'a', '2024-01-01'), (2, 2.50, 2.5, 8, 'b', '2024-01-02')`);
    const pipeline = await bench.create({
      source_query: "SELECT * FROM content.price",
      target_key: ["id"],
      create_target: false,
    });
    await bench.query(`CREATE TABLE ${pipeline.target_table}
      (id bigint PRIMARY KEY, free numeric, fixed numeric(9,2), big numeric, code char(4), at timestamptz)`);
    await bench.run(pipeline);
    expect(await reconcile(pipeline)).toMatchObject({ status: "MATCH" });
    // 1.00 is stored otherwise than 1.0 where the type fixes no scale; where it does, both are 1.00.
    await bench.query(`UPDATE ${pipeline.target_table} SET free = 1.00, fixed = 1.0 WHERE id = 1`);
    const { report } = await reconcile(pipeline);
    expect(report.different).toEqual({ count: 1, keys: [{ key: { id: "1" }, columns: ["free"] }] });
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
  });

  it("R7 of types without an equality are compared, too: json, xml-like texts, points, arrays", async () => {
    await bench.query(
      `CREATE TABLE content.odd AS SELECT 1 AS id, '{"a": 1}'::json AS j, '(1,2)'::point AS p, ARRAY['x', NULL] AS l`,
    );
    const pipeline = await loaded({ source_query: "SELECT * FROM content.odd", target_key: ["id"] });
    await bench.query(`UPDATE ${pipeline.target_table} SET j = '{"a":1}', p = '(1,3)'`);
    expect((await reconcile(pipeline)).report.different.keys).toEqual([{ key: { id: "1" }, columns: ["j", "p"] }]);
  });

  it("R7 keys of several columns, of text in any collation, and with odd names", async () => {
    await bench.query(`CREATE TABLE content.word AS
      SELECT w COLLATE "und-x-icu" AS "w ""x""", n AS "n, n", w || n AS t FROM unnest(
        ARRAY['a','A','b','B','_','é','z','Z','aa','-','ж','Ж','','ß','ss','10','9', E'tab\\there', E'back\\\\slash']) w,
        generate_series(1, 3) n`);
    const pipeline = await bench.create({
      source_query: "SELECT * FROM content.word",
      target_key: ['w "x"', "n, n"],
      create_target: false,
      batch_size: 4,
    });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} ("w ""x""" text COLLATE "und-x-icu", "n, n" int, t text, PRIMARY KEY ("n, n", "w ""x"""))`,
    );
    await bench.run(pipeline);
    expect(await reconcile(pipeline)).toMatchObject({ status: "MATCH" });
    await bench.query(`UPDATE ${pipeline.target_table} SET t = 'x' WHERE "w ""x""" = '' AND "n, n" = 2;
      DELETE FROM ${pipeline.target_table} WHERE "w ""x""" IN ('ж', E'tab\\there') AND "n, n" = 1`);
    const { report } = await reconcile(pipeline);
    const key = (w: string, n: number) => ({ 'w "x"': w, "n, n": String(n) });
    expect(report.different.keys).toEqual([{ key: key("", 2), columns: ["t"] }]);
    expect(report.missing.keys).toEqual([key("tab\there", 1), key("ж", 1)]);
    expect(report.source).toMatchObject({ rows: 57, key_min: key("", 1), key_max: key("ж", 3) });
  });

  it("R7 that the target's types refuse are missing or different, and counted", async () => {
    await bench.query(`CREATE TABLE content.film AS SELECT n AS id, n::text AS year FROM generate_series(1, 500) n`);
    const pipeline = await bench.create({
      source_query: "SELECT id, year FROM content.film",
      target_key: ["id"],
      create_target: false,
    });
    await bench.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, year varchar(4))`);
    await bench.run(pipeline);
    await bench.query(
      `UPDATE content.film SET year = 'unknown' WHERE id IN (3, 4); DELETE FROM ${pipeline.target_table} WHERE id = 4`,
    );
    const { status, report } = await reconcile(pipeline);
    expect(status).toBe("DIFFERENT");
    expect(report.source.rows_refused).toBe(2);
    expect(report.different).toEqual({ count: 1, keys: [{ key: { id: "3" }, columns: ["year"] }] });
    expect(report.missing).toEqual({ count: 1, keys: ids(4) });
  });

  it("R7 that cannot even be staged name the columns that do not fit", async () => {
    await bench.query(`CREATE DOMAIN analytics.small AS int CHECK (value < 100);
      CREATE TABLE content.film AS SELECT n AS id, n AS a, n AS b, 'x' AS title FROM generate_series(1, 50) n`);
    const pipeline = await bench.create({
      source_query: "SELECT id, a, b, title FROM content.film",
      target_key: ["id"],
      create_target: false,
    });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} (id analytics.small PRIMARY KEY, a analytics.small, b analytics.small, title text)`,
    );
    await bench.run(pipeline);
    await bench.query(`UPDATE content.film SET b = 100 + id WHERE id IN (3, 5); UPDATE content.film SET a = 500 WHERE id = 5;
      INSERT INTO content.film VALUES (600, 1, 1, 'y')`);
    const { report } = await reconcile(pipeline);
    expect(report.different.keys).toEqual([
      { key: { id: "3" }, columns: ["b"] },
      { key: { id: "5" }, columns: ["a", "b"] },
    ]);
    expect(report.missing).toEqual({ count: 1, keys: [{ id: null }] });
    expect(report.source).toMatchObject({ rows: 51, rows_refused: 3 });
  });

  it("R7 of one key several times: the last counts, as in a load; a row without a key is missing", async () => {
    await bench.query(`CREATE TABLE content.film AS SELECT n / 2 AS id, 'same' AS title FROM generate_series(2, 9) n`);
    const pipeline = await bench.create({
      source_query: "SELECT id, title FROM content.film",
      target_key: ["id"],
      create_target: false,
    });
    await bench.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text);
      INSERT INTO ${pipeline.target_table} SELECT DISTINCT id, title FROM content.film`);
    const { status, report } = await reconcile(pipeline);
    expect({ status, source: report.source }).toMatchObject({
      status: "MATCH",
      source: { rows: 8, rows_duplicate: 4 },
    });
    await bench.query("INSERT INTO content.film VALUES (NULL, 'a'), (NULL, 'b')");
    expect((await reconcile(pipeline)).report.missing).toEqual({ count: 2, keys: [{ id: null }, { id: null }] });
  });
});

describe("a reconcile that cannot be done", () => {
  it.each([
    ["a missing target", { source_query: "SELECT 1 AS id" }, "TARGET_MISSING"],
    ["a broken query", { source_query: "SELECT nothing" }, "SOURCE_QUERY_FAILED"],
    [
      "an unknown connection",
      { source_query: "SELECT 1 AS id", source_connection: "moon" },
      "SOURCE_CONNECTION_UNKNOWN",
    ],
  ])("says why: %s", async (_, config, code) => {
    const pipeline = await bench.create({ target_key: ["id"], ...config });
    const { id } = await bench.store.reconciles.request(pipeline.id, "test");
    expect(await ended(pipeline, id)).toMatchObject({ status: "FAILED", error_code: code, report: null });
  });

  it("R7 is inconclusive when the search cluster is too busy to answer", async ({ onTestFinished }) => {
    let asked = 0;
    const busy = createServer((_request, response) => {
      asked += 1;
      response.writeHead(429, { "content-type": "application/json" }).end('{"error":{"type":"es_rejected"}}');
    });
    await once(busy.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void busy.close());
    await bench.close();
    const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`;
    bench = await openBench({ ELASTICSEARCH_URL: url, ELASTICSEARCH_PATIENCE_SECONDS: "0", TARGET_INDEXES: "films" });
    await bench.startRunner();
    const pipeline = await bench.create({
      source_query: "SELECT 1 AS id",
      target_table: "es:films",
      target_key: ["id"],
      create_target: false,
    });
    const { id } = await bench.store.reconciles.request(pipeline.id, "test");
    expect(await ended(pipeline, id)).toMatchObject({ status: "INCONCLUSIVE", error_code: "SEARCH_BUSY" });
    expect(asked).toBeGreaterThan(0);
  });

  it("R7 is inconclusive when the source stays silent for too long", async () => {
    await bench.close();
    bench = await openBench({ READ_TIMEOUT_SECONDS: "1" });
    await bench.startRunner();
    const pipeline = await bench.create({
      source_query:
        "SELECT count(*)::int AS id, 'x' AS slept FROM generate_series(1, 90000) a, generate_series(1, 90000) b",
      target_key: ["id"],
    });
    await bench.query(`CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, slept text)`);
    const { id } = await bench.store.reconciles.request(pipeline.id, "test");
    const done = await ended(pipeline, id);
    expect(done).toMatchObject({ status: "INCONCLUSIVE", error_code: "STATEMENT_TIMEOUT", report: null });
    expect(done.error).toMatch(/READ_TIMEOUT_SECONDS/);
  });
});
