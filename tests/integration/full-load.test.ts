import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { holdBatch, runToPause } from "../support/batches.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

async function films(count: number, more: object = {}): Promise<Pipeline> {
  await bench.query(`CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, ${count}) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id)`);
  return bench.create({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    batch_size: 100,
    ...more,
  });
}

async function requireEqual(pipeline: Pipeline): Promise<void> {
  expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(`(${pipeline.source_query})`));
  expect(await bench.query("SELECT relname FROM pg_class WHERE relname LIKE '\\_vitrina%'")).toEqual([]);
}

/** The ways a full load can go, by what makes it go so. */
const WAYS: [string, object, string][] = [
  ["a number as key, compared by ranges", {}, "compare and apply"],
  [
    "a text as key, through a shadow",
    { source_query: "SELECT id::text AS id, title FROM content.film" },
    "shadow and merge",
  ],
];

describe.each(WAYS)("a full load with %s", (_, config, strategy) => {
  it("R5.1 brings new and changed rows, and removes those that are gone", async () => {
    const pipeline = await films(1000, config);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", strategy: "new table", rows_written: 1000 });
    await requireEqual(pipeline);
    await bench.query(`DELETE FROM content.film WHERE id % 10 = 0; DELETE FROM content.film WHERE id > 950;
      UPDATE content.film SET title = 'changed' WHERE id % 10 = 1; INSERT INTO content.film VALUES (5000, 'new'), (0, 'first')`);
    expect(await bench.run(pipeline)).toMatchObject({ strategy, rows_read: 857, rows_written: 97, rows_deleted: 145 });
    await requireEqual(pipeline);
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 0, rows_deleted: 0, rows_unchanged: 857 });
  });

  it("R5.1 refuses an empty source, and changes nothing, unless the pipeline allows it", async () => {
    const pipeline = await films(50, config);
    await bench.run(pipeline);
    await bench.query("CREATE TABLE kept AS TABLE content.film; DELETE FROM content.film");
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "SOURCE_EMPTY" });
    expect(await bench.query(`SELECT count(*)::int AS n FROM ${pipeline.target_table}`)).toEqual([{ n: 50 }]);
    await bench.store.pipelines.update(pipeline.id, { allow_empty: true }, { author: "test" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_deleted: 50 });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual([]);
  });

  it("refuses to delete more than the allowed share, and says how many it would", async () => {
    const pipeline = await films(100, { ...config, max_delete_percent: 20 });
    await bench.run(pipeline);
    await bench.query("DELETE FROM content.film WHERE id > 70");
    const refused = await bench.run(pipeline);
    expect(refused).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS" });
    expect(refused.error).toContain("30 of 100 rows");
    expect(await bench.query(`SELECT count(*)::int AS n FROM ${pipeline.target_table}`)).toEqual([{ n: 100 }]);
    await bench.store.pipelines.update(pipeline.id, { max_delete_percent: 30 }, { author: "test" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_deleted: 30 });
    await requireEqual(pipeline);
  });

  it("keeps views, grants and indexes of the target, and never shows it half-loaded", async () => {
    const pipeline = await films(2000, config);
    await bench.run(pipeline);
    const table = pipeline.target_table;
    await bench.query(`CREATE VIEW public.seen AS SELECT count(*)::int AS n, min(title) AS least FROM ${table};
      GRANT SELECT ON ${table} TO vitrina_meta; CREATE INDEX by_title ON ${table} (title)`);
    await bench.query("UPDATE content.film SET title = 'b' || id; INSERT INTO content.film VALUES (9999, 'b')");
    const seen = new Set<string>();
    await bench.store.requests.run(pipeline.id, "api");
    await until("the run ends", async () => {
      const [row] = await bench.query("SELECT * FROM public.seen");
      seen.add(JSON.stringify(row));
      return (await bench.store.pipelines.get(pipeline.id)).status === "IDLE";
    });
    const [last] = await bench.query("SELECT * FROM public.seen");
    seen.add(JSON.stringify(last));
    expect([...seen]).toEqual(['{"n":2000,"least":"film 1"}', '{"n":2001,"least":"b"}']);
    expect(await bench.query("SELECT to_regclass('analytics.by_title') IS NOT NULL AS kept")).toEqual([{ kept: true }]);
    expect(await bench.query(`SELECT has_table_privilege('vitrina_meta', '${table}', 'SELECT') AS kept`)).toEqual([
      { kept: true },
    ]);
    await requireEqual(pipeline);
  });

  it("R4.3 can be paused and goes on where it stopped", async () => {
    const pipeline = await films(2000, config);
    // Into a new table, and onto the target.
    for (let round = 1; round <= 2; round += 1) {
      const paused = await runToPause(bench, pipeline);
      const { scanPosition, progress, watermark } = await bench.store.state.get(pipeline.id);
      expect([progress, watermark]).toEqual([
        { value: null, id: scanPosition?.[0] },
        { value: null, id: null },
      ]);
      // Behind the position, where the rest of the load does not look any more.
      await bench.query(
        "UPDATE content.film SET title = 'behind' WHERE id = 1; DELETE FROM content.film WHERE id = 10",
      );
      const rest = await bench.run(pipeline);
      expect(rest).toMatchObject({ status: "SUCCESS", resumed: true, rows_read: 2000 - paused.rows_read });
      expect(rest.notes.join()).toContain("A further run follows by itself");
      const [next] = (await bench.store.runs.list(pipeline.id, { limit: 1 })).items;
      expect(next).toMatchObject({ trigger: "follow_up", status: "SUCCESS", rows_read: 1999, rows_deleted: 1 });
      expect(next).toMatchObject({ run_request: rest.run_request, resumed: false, notes: [] });
      await requireEqual(pipeline);
      await bench.query("INSERT INTO content.film (id, title) VALUES (10, 'back')");
      await bench.query("UPDATE content.film SET title = title || '!' WHERE id % 2 = 0");
    }
  });
});

it("R4.3 a load that an earlier version left unfinished starts over", async () => {
  const pipeline = await films(2000);
  await bench.run(pipeline);
  await bench.query("UPDATE content.film SET title = title || '!'");
  await runToPause(bench, pipeline);
  const left = await bench.query(
    "SELECT oid::regclass AS name FROM pg_class WHERE relname ~ '^_vitrina_load_' AND relkind = 'r'",
  );
  expect(left).toHaveLength(1);
  // Before it kept the keys of refused rows.
  await bench.query(`COMMENT ON TABLE ${left[0]?.["name"]} IS 'vitrina load: compare and apply';
    DROP TABLE ${`${left[0]?.["name"]}`.replace("_vitrina_load_", "_vitrina_refused_")}`);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", resumed: false, rows_read: 2000 });
  await requireEqual(pipeline);
});

it("R5.1 by push-down reads one snapshot, whatever changes while it runs, and also behind a refused row", async () => {
  const pipeline = await films(2000);
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "push-down" });
  await bench.query(`ALTER TABLE ${pipeline.target_table} ADD CHECK (title <> 'refused');
    UPDATE content.film SET title = CASE WHEN id = 1500 THEN 'refused' ELSE title || '!' END`);
  const before = await bench.rowsOf("(SELECT id, title FROM content.film WHERE title <> 'refused')");
  const { batchNo } = await bench.store.state.get(pipeline.id);
  const letGo = await holdBatch(bench, pipeline, 2);
  await bench.store.requests.run(pipeline.id, "api");
  const batches = async () => (await bench.store.state.get(pipeline.id)).batchNo - batchNo;
  await until("a batch is committed", async () => (await batches()) > 0);
  await bench.query("UPDATE content.film SET id = -id, title = 'moved' WHERE id % 2 = 0");
  expect(await batches()).toBe(1);
  await letGo();
  expect(await bench.ended(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "push-down", rows_rejected: 1 });
  const after = await bench.rowsOf(`(SELECT id, title FROM ${pipeline.target_table} WHERE id <> 1500)`);
  expect(after).toEqual(before);
});

describe("the target", () => {
  it("gets missing columns when the pipeline allows it", async () => {
    const pipeline = await films(10, { add_columns: true });
    await bench.run(pipeline);
    await bench.store.pipelines.update(
      pipeline.id,
      { source_query: "SELECT id, title, length(title) AS size FROM content.film" },
      { author: "test" },
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 10 });
    await requireEqual({ ...pipeline, source_query: "SELECT id, title, length(title) AS size FROM content.film" });
  });

  it("may have columns of its own, which a load leaves alone", async () => {
    await bench.query("CREATE TABLE analytics.own (id int PRIMARY KEY, title text, note text DEFAULT 'mine')");
    const pipeline = await films(3, { target_table: "analytics.own" });
    await bench.run(pipeline);
    await bench.query(
      "UPDATE analytics.own SET note = 'kept' WHERE id = 1; UPDATE content.film SET title = 'x' WHERE id = 1",
    );
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1, rows_unchanged: 2 });
    expect(await bench.rowsOf("analytics.own")).toEqual(["(1,x,kept)", '(2,"film 2",mine)', '(3,"film 3",mine)']);
  });

  it.each([
    ["int", "compare and apply"],
    ["text", "shadow and merge"],
  ])("may fill columns itself, in whatever way, and check them (a key of type %s)", async (type, strategy) => {
    await bench.query(`CREATE TABLE analytics.own (sk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id ${type} UNIQUE,
        title text, length int NOT NULL GENERATED ALWAYS AS (length(title)) STORED, serial bigserial, stamp text NOT NULL,
        watched_by text, CHECK (stamp IS NOT NULL), CHECK (title <> 'watched' OR watched_by IS NOT NULL));
      CREATE FUNCTION analytics.stamp() RETURNS trigger LANGUAGE plpgsql
        AS $$BEGIN NEW.stamp := TG_OP || ' ' || NEW.id; RETURN NEW; END$$;
      CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON analytics.own FOR EACH ROW EXECUTE FUNCTION analytics.stamp();
      GRANT ALL ON ALL TABLES IN SCHEMA analytics TO vitrina_writer; GRANT USAGE ON SEQUENCE analytics.own_serial_seq TO vitrina_writer`);
    const source_query = `SELECT id::${type} AS id, title FROM content.film`;
    const pipeline = await films(5, { target_table: "analytics.own", source_query });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", strategy, rows_written: 5, rows_rejected: 0 });
    await bench.query(`UPDATE analytics.own SET watched_by = 'ann' WHERE id = '2';
      UPDATE content.film SET title = 'watched' WHERE id = 2; DELETE FROM content.film WHERE id = 1`);
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1, rows_deleted: 1, rows_rejected: 0 });
    expect(await bench.query("SELECT * FROM analytics.own WHERE id IN ('2', '3') ORDER BY id")).toEqual([
      {
        sk: "2",
        id: expect.anything(),
        title: "watched",
        length: 7,
        serial: "2",
        stamp: "UPDATE 2",
        watched_by: "ann",
      },
      { sk: "3", id: expect.anything(), title: "film 3", length: 6, serial: "3", stamp: "INSERT 3", watched_by: null },
    ]);
  });

  it("keeps any type exactly, by push-down and by stream", async () => {
    await bench.query(`
      CREATE TYPE content.mood AS ENUM ('sad', 'ok');
      CREATE DOMAIN content.percent AS numeric CHECK (value <= 100);
      CREATE TABLE content.kinds (id bigint PRIMARY KEY, a text[], b jsonb, c json, d content.mood, e content.percent,
        f int4range, g bytea, h interval, i timestamptz, j numeric, k timestamp, l date, m float8, n char(5), o varchar(9),
        p point, q uuid, r boolean, s inet, t time, u "char", v text, w content.mood[], x bit(3), y money, z tsvector);
      INSERT INTO content.kinds VALUES
        (9007199254740993, '{"a,b",NULL,"","q\\"q"}', '{"n": 12345678901234567890.123}', '{"b":1,  "a":2}', 'ok', 99.90, '[1,5)',
         '\\xdeadbeef00', '-1 mon +2 days -03:04:05.678901', 'infinity', 'NaN', '0044-03-15 12:00:00.000001 BC', '-infinity',
         '1.7976931348623157e308', 'ab', 'x', '(1.5,-2)', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, '10.0.0.1/8', '24:00:00', 'c',
         E'tab\\there\\nline\\\\back \\u0416 😀', '{sad,ok}', B'101', 12.34, 'fat:1 cat:2'),
        (-5, '{}', 'null', '[]', NULL, 1.000, 'empty', '', '0', '294276-12-31 23:59:59.999999+00', 123456789012345678901234567890.123456789,
         '2024-02-29', '9999-12-31', '-0', '', '', NULL, NULL, NULL, '::1', '00:00', '', '', NULL, B'000', 0, '');
      GRANT USAGE ON TYPE content.mood, content.percent TO vitrina_writer, vitrina_loader;
      GRANT USAGE ON SCHEMA content TO vitrina_writer`);
    const same = { source_query: "SELECT * FROM content.kinds", target_key: ["id"] };
    const pushed = await bench.create(same);
    expect(await bench.run(pushed)).toMatchObject({ status: "SUCCESS", data_path: "push-down", rows_written: 2 });
    await requireEqual(pushed);
    expect(await bench.run(pushed)).toMatchObject({ rows_written: 0, rows_unchanged: 2 });
    await bench.stopRunner();
    const streaming = await openStreamRunner();
    const streamed = await bench.create(same);
    expect(await bench.run(streamed)).toMatchObject({ status: "SUCCESS", data_path: "stream", rows_written: 2 });
    await requireEqual(streamed);
    expect(await bench.run(streamed)).toMatchObject({ rows_written: 0, rows_unchanged: 2 });
    await streaming.stop();
  });
});

/** Without the loader's login rows travel through the runner. */
async function openStreamRunner(): Promise<{ stop(): Promise<void> }> {
  const { startRunner } = await import("../../src/main/runner.ts");
  const { createLog } = await import("../../src/observability/log.ts");
  const { settings, urls } = bench.database;
  return startRunner(settings, { ...urls, loader: undefined }, createLog({ level: "silent" }));
}

describe("rows that the target refuses", () => {
  it.each(["push-down", "stream"])("are set aside one by one, and the rest is written (%s)", async (path) => {
    if (path === "stream") await bench.stopRunner();
    const other = path === "stream" ? await openStreamRunner() : undefined;
    await bench.query(`CREATE TABLE analytics.strict (id int PRIMARY KEY, title text CHECK (title <> 'film 77'), n int);
      INSERT INTO analytics.strict VALUES (77, 'old 77', 1), (9000, 'gone', 1)`);
    const pipeline = await films(1000, {
      target_table: "analytics.strict",
      source_query:
        "SELECT id, CASE WHEN id = 500 THEN repeat('x', 10) ELSE title END AS title, id AS n FROM content.film",
      max_delete_percent: 100,
    });
    await bench.query("ALTER TABLE analytics.strict ADD CHECK (length(title) < 10)");
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({
      status: "SUCCESS",
      rows_read: 1000,
      rows_written: 998,
      rows_rejected: 2,
      rows_deleted: 1,
    });
    const rejects = await bench.query(
      "SELECT row_key, row->>'title' AS title, error_code, error FROM etl.etl_rejects ORDER BY id",
    );
    // The server was given a table beside the target; people know the target.
    const error = expect.stringMatching(/relation "strict" violates check constraint "strict_/);
    expect(rejects).toEqual([
      { row_key: { id: "77" }, title: "film 77", error_code: "ROW_REFUSED", error },
      { row_key: { id: "500" }, title: "xxxxxxxxxx", error_code: "ROW_REFUSED", error },
    ]);
    // The row that was refused still stands for its row in the target: it is neither changed nor deleted.
    expect(await bench.query("SELECT title FROM analytics.strict WHERE id = 77")).toEqual([{ title: "old 77" }]);
    expect(await bench.query("SELECT count(*)::int AS n FROM analytics.strict")).toEqual([{ n: 999 }]);
    await other?.stop();
  });

  it.each([
    ["bigint", "integer", "compare and apply"],
    ["text", "varchar(4)", "shadow and merge"],
  ])("keep their rows in the target, and no others: a key of type %s in one of type %s", async (type, stored, way) => {
    await bench.query(`CREATE TABLE analytics.strict (id ${stored} PRIMARY KEY, title text CHECK (title <> 'bad'))`);
    const pipeline = await films(10, {
      target_table: "analytics.strict",
      source_query: `SELECT id::${type} AS id, title FROM content.film`,
      batch_size: 4,
    });
    await bench.query("ALTER TABLE content.film ALTER id TYPE bigint");
    expect(await bench.run(pipeline)).toMatchObject({ strategy: way, rows_written: 10 });
    // Rows are gone from batches with refused ones; some of these have keys that the target cannot have, a whole batch of them.
    await bench.query(`DELETE FROM content.film WHERE id IN (2, 10); INSERT INTO content.film VALUES (3000000000, 'x');
      INSERT INTO content.film SELECT -3000000000 - n, 'x' FROM generate_series(1, 4) n;
      UPDATE content.film SET title = CASE WHEN id IN (3, 9) THEN 'bad' ELSE 'new' END WHERE id IN (3, 4, 9)`);
    const left = [1, 3, 4, 5, 6, 7, 8, 9].map((id) => ({ id: String(id), title: id === 4 ? "new" : `film ${id}` }));
    for (const rows_deleted of [2, 0]) {
      const run = await bench.run(pipeline);
      expect(run).toMatchObject({ status: "SUCCESS", strategy: way, rows_rejected: 7, rows_deleted });
      expect(await bench.query("SELECT id::text, title FROM analytics.strict ORDER BY id")).toEqual(left);
    }
    expect(await bench.query("SELECT relname FROM pg_class WHERE relname LIKE '\\_vitrina%'")).toEqual([]);
  });

  it("stand for no range of the target where they have no whole key", async () => {
    await bench.query(`CREATE TABLE analytics.pairs (a int, b int, PRIMARY KEY (a, b));
      INSERT INTO analytics.pairs VALUES (0, 1), (1, 7), (2, 1), (3, 1);
      CREATE TABLE content.pairs AS SELECT 1 AS a, NULL::int AS b FROM generate_series(1, 4) UNION ALL VALUES (2, 1), (3, 1)`);
    const pipeline = await bench.create({
      source_query: "SELECT a, b FROM content.pairs",
      target_table: "analytics.pairs",
      target_key: ["a", "b"],
      batch_size: 4,
    });
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "SUCCESS", strategy: "compare and apply", rows_rejected: 4, rows_deleted: 2 });
    expect(await bench.rowsOf("analytics.pairs")).toEqual(["(2,1)", "(3,1)"]);
  });

  it("fail the run beyond the limit, and the checkpoint stays before that batch", async () => {
    await bench.query("CREATE TABLE analytics.strict (id int PRIMARY KEY, title text CHECK (title NOT LIKE '%3'))");
    const pipeline = await films(1000, { target_table: "analytics.strict", max_rejects: 15 });
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_REJECTS", rows_read: 100, rows_rejected: 10 });
    expect(await bench.store.state.get(pipeline.id)).toMatchObject({ scanPosition: ["100"] });
    expect(await bench.rowsOf("analytics.strict")).toEqual([]);
    // Those of the batch that was given up can be looked at, too, until a run gets past them.
    const keys = async () => {
      const { items } = await bench.store.rejects.list(pipeline.id, { limit: 200 });
      return items.map(({ key }) => Number(key?.["id"])).sort((a, b) => a - b);
    };
    const refusedUpTo = (last: number) => Array.from({ length: last / 10 }, (_, n) => 10 * n + 3);
    expect(await keys()).toEqual(refusedUpTo(200));
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", rows_rejected: 10 });
    expect(await keys()).toEqual(refusedUpTo(300));
    await bench.query("UPDATE etl.etl_pipelines SET max_rejects = 1000");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 80 });
    expect(await keys()).toEqual(refusedUpTo(1000));
  });
});

it("R8.4 tells everybody what kind of value failed a query, and never the value", async () => {
  await bench.query("CREATE TABLE content.film AS SELECT 1 AS id, 'ann@example.com & | bob' AS title");
  const pipeline = await bench.create({
    source_query: "SELECT id, title::tsquery::text AS title FROM content.film",
    target_key: ["id"],
  });
  const run = await bench.run(pipeline);
  expect(run).toMatchObject({ status: "FAILED", error_code: "SOURCE_QUERY_FAILED" });
  expect(run.error).toContain('syntax error in tsquery: "…" (SQLSTATE 42601)');
  const logged = await until("the reason is in the log", async () => {
    const lines = await bench.query("SELECT message, fields::text FROM etl.etl_run_logs");
    return JSON.stringify(lines).includes("SOURCE_QUERY_FAILED") ? lines : undefined;
  });
  expect(JSON.stringify([run, logged])).not.toContain("ann@");
});

it("tells how many rows it expects, and not where the planner could only guess", async () => {
  await bench.query("CREATE TABLE content.film AS SELECT n AS id, n % 7 AS kind FROM generate_series(1, 100) n");
  await bench.query("ANALYZE content.film");
  const estimates = [];
  for (const source_query of [
    "SELECT id, kind FROM content.film",
    "SELECT f.id, k.n AS kind FROM content.film f CROSS JOIN LATERAL (SELECT count(*) AS n FROM content.film g WHERE g.id = f.id) k",
    "SELECT kind AS id, count(*) AS kind FROM content.film GROUP BY kind",
    "SELECT DISTINCT kind AS id, 1 AS kind FROM content.film",
    "SELECT id, kind FROM content.film UNION SELECT id, kind FROM content.film",
    "SELECT n AS id, 1 AS kind FROM generate_series(1, 10) AS n",
  ]) {
    const run = await bench.run(await bench.create({ source_query, target_key: ["id"] }));
    estimates.push([run.status, run.estimated_rows]);
  }
  expect(estimates).toEqual([
    ["SUCCESS", 100],
    ["SUCCESS", 100],
    ...Array.from({ length: 4 }, () => ["SUCCESS", null]),
  ]);
});

it("refuses a row without a key, also when it is the only one, and says so", async () => {
  await bench.query(
    "CREATE TABLE content.film AS SELECT NULLIF(n, 50) AS id, 't' AS title FROM generate_series(1, 100) n",
  );
  const pipeline = await bench.create({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    batch_size: 10,
  });
  const run = await bench.run(pipeline);
  expect(run).toMatchObject({
    status: "SUCCESS",
    data_path: "stream",
    rows_read: 100,
    rows_written: 99,
    rows_rejected: 1,
  });
});
