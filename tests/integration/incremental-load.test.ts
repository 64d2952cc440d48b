import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { runToPause } from "../support/batches.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

const OLD = "'2020-01-01 00:00:00.000001+00'::timestamptz";

async function films(rows: string, more: object = {}): Promise<Pipeline> {
  await bench.query(`CREATE TABLE content.film (id bigint PRIMARY KEY, title text, modified timestamptz);
    CREATE INDEX ON content.film (modified, id); INSERT INTO content.film ${rows}`);
  return bench.create({
    source_query: "SELECT id, title, modified FROM content.film",
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "modified",
    incremental_id_key: "id",
    batch_size: 100,
    ...more,
  });
}

async function requireEqual(pipeline: Pipeline): Promise<void> {
  expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(`(${pipeline.source_query})`));
}

const state = async (pipeline: Pipeline) => (await bench.store.state.get(pipeline.id)).watermark;

describe("an incremental load", () => {
  it("R5.2 reads everything once, then only what changed", async () => {
    const pipeline = await films(
      `SELECT n, 'film ' || n, ${OLD} + n * interval '1 microsecond' FROM generate_series(1, 1000) n`,
    );
    expect(await bench.run(pipeline)).toMatchObject({
      status: "SUCCESS",
      rows_read: 1000,
      rows_written: 1000,
      batches: 10,
    });
    await requireEqual(pipeline);
    expect(await state(pipeline)).toEqual({ value: "2020-01-01 00:00:00.001001+00", id: "1000" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 0, rows_written: 0 });
    await bench.query(
      `UPDATE content.film SET title = 'new', modified = ${OLD} + interval '1 day' WHERE id IN (3, 500)`,
    );
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 2, rows_written: 2 });
    await requireEqual(pipeline);
  });

  it("R5.2 reads ties across batches once: 1,000 rows of one moment, 100 at a time", async () => {
    const pipeline = await films(`SELECT n, 'film', ${OLD} FROM generate_series(1, 1000) n`);
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 1000, rows_written: 1000 });
    await bench.query(`INSERT INTO content.film VALUES (1001, 'tie', ${OLD})`);
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 1, rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("R5.2 without an id reads the last moment again rather than miss a tie", async () => {
    const pipeline = await films(
      `SELECT n, 'film', ${OLD} + n % 7 * interval '1 day' FROM generate_series(1, 1000) n`,
      {
        incremental_id_key: null,
      },
    );
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 1000, rows_written: 1000 });
    await bench.query(`INSERT INTO content.film VALUES (1001, 'tie', ${OLD} + interval '6 days')`);
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1, rows_unchanged: 143 });
    await requireEqual(pipeline);
  });

  it("R5.2 does not lose a row that a long transaction commits late", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 10) n`);
    const writer = new pg.Client({ connectionString: bench.database.url });
    await writer.connect();
    await writer.query("BEGIN");
    await writer.query("INSERT INTO content.film VALUES (100, 'late', clock_timestamp())");
    await bench.query("INSERT INTO content.film VALUES (101, 'later but committed first', clock_timestamp())");
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 11 });
    await writer.query("COMMIT");
    await writer.end();
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("R5.2 nor one that Vitrina itself commits late, where a mart is the source of another one", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 10) n`);
    await bench.query(
      "GRANT USAGE ON SCHEMA content TO vitrina_writer; GRANT INSERT ON content.film TO vitrina_writer",
    );
    const writer = new pg.Client({ connectionString: bench.database.urls.writer });
    await writer.connect();
    await writer.query("BEGIN; SELECT 1");
    await until("it is older than what is always looked back", async () => {
      const { rows } = await writer.query("SELECT clock_timestamp() - now() > interval '3 seconds' AS yes");
      return rows[0].yes === true;
    });
    await writer.query("INSERT INTO content.film VALUES (100, 'late', now())");
    await bench.query("INSERT INTO content.film VALUES (101, 'later but committed first', clock_timestamp())");
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 11 });
    await writer.query("COMMIT");
    await writer.end();
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("R5.2 nor one of a session that does not show its transactions (track_activities = off)", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 10) n`);
    const writer = new pg.Client({ connectionString: bench.database.url });
    await writer.connect();
    await writer.query("SET track_activities = off");
    await writer.query("BEGIN");
    await writer.query("INSERT INTO content.film VALUES (100, 'late', clock_timestamp() - interval '20 seconds')");
    await bench.query("INSERT INTO content.film VALUES (101, 'later but committed first', clock_timestamp())");
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 11 });
    await writer.query("COMMIT");
    await writer.end();
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("R5.2 the same for numbers as key: the position counts only when all that was alive then has ended", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, NULL FROM generate_series(1, 10) n`, {
      incremental_key: "id",
      incremental_id_key: null,
    });
    const writer = new pg.Client({ connectionString: bench.database.url });
    await writer.connect();
    await writer.query("BEGIN; INSERT INTO content.film VALUES (11, 'late')");
    await bench.query("INSERT INTO content.film VALUES (12, 'committed first')");
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 11 });
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 11, rows_written: 0 });
    await writer.query("COMMIT");
    await writer.end();
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    await requireEqual(pipeline);
    await until("the position is confirmed", async () => {
      const { rows_read } = await bench.run(pipeline);
      return rows_read <= 1;
    });
  });

  it("R5.2 on a quiet server a number counts at once: the second run reads nothing", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 300) n`, {
      incremental_key: "id",
    });
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 300, rows_written: 300 });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 0 });
    await bench.query("INSERT INTO content.film SELECT n, 'new', NULL FROM generate_series(301, 305) n");
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 5, rows_written: 5 });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 0 });
    await requireEqual(pipeline);
  });

  it("R5.2 a number that later rows use again is read again, whatever their id", async () => {
    const pipeline = await films("SELECT n, 'film ' || n, NULL FROM generate_series(10, 30) n", {
      source_query: "SELECT id, title, id / 10 AS issue FROM content.film",
      incremental_key: "issue",
    });
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 21 });
    await bench.query("UPDATE content.film SET id = 31 WHERE id = 30");
    await bench.query("INSERT INTO content.film VALUES (30, 'smaller id, same issue', NULL)");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 2 });
    await requireEqual(pipeline);
  });

  it("a row far in the future does not hide those that come after it", async () => {
    const pipeline = await films(
      `VALUES (1, 'far', 'infinity'::timestamptz), (2, 'year 9999', '9999-12-31'), (3, 'old', ${OLD})`,
    );
    await bench.run(pipeline);
    await bench.query("INSERT INTO content.film VALUES (4, 'now', clock_timestamp())");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("refuses rows without a key by default, and leaves them out on request", async () => {
    const pipeline = await films(`VALUES (1, 'a', ${OLD}), (2, 'no stamp', NULL)`);
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "CURSOR_NULL", rows_read: 0 });
    await bench.store.pipelines.update(pipeline.id, { null_cursor: "exclude" }, { author: "test" });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 1 });
  });

  describe("of a query that is costly to compute", () => {
    const ROWS = 300_000;
    const ratings = async (): Promise<Pipeline> => {
      await bench.query(`CREATE TABLE content.rating (film_id bigint, at timestamptz);
        INSERT INTO content.rating SELECT n % 50, ${OLD} + n * interval '1 second' FROM generate_series(1, ${ROWS}) n`);
      return bench.create({
        source_query: "SELECT film_id, count(*) AS ratings, max(at) AS modified FROM content.rating GROUP BY film_id",
        target_key: ["film_id"],
        mode: "incremental",
        incremental_key: "modified",
      });
    };
    const rowsScanned = async (): Promise<number> => {
      const text = "SELECT seq_tup_read AS rows FROM pg_stat_user_tables WHERE relname = 'rating'";
      return Number((await bench.query(text))[0]?.["rows"]);
    };

    it("computes it once, in the first run and in the next", async () => {
      const pipeline = await ratings();
      for (const read of [50, 1]) {
        const before = await rowsScanned();
        expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: read });
        await until("the scan to be counted", async () => (await rowsScanned()) >= before + ROWS);
        expect((await rowsScanned()) - before).toBe(ROWS);
      }
      await requireEqual(pipeline);
    });

    it("refuses rows without a key when it meets them, and writes nothing", async () => {
      const pipeline = await ratings();
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 50 });
      await bench.query("INSERT INTO content.rating VALUES (1000, NULL), (1001, now())");
      expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "CURSOR_NULL", rows_written: 0 });
      await bench.query("DELETE FROM content.rating WHERE at IS NULL");
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
      await requireEqual(pipeline);
    });
  });

  const unusable: [string, string][] = [
    ["uuid", "md5(title)::uuid"],
    ["double precision", "id::float8"],
    ["boolean", "true"],
  ];
  it.each(unusable)("refuses a %s as key", async (type, value) => {
    const pipeline = await films(`VALUES (1, 'a', ${OLD})`, {
      source_query: `SELECT id, ${value} AS modified FROM content.film`,
    });
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "FAILED", error_code: "CURSOR_UNUSABLE" });
    expect(run.error).toContain(type);
  });

  it("does not reuse a position for another query, until somebody decides", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 10) n`);
    await bench.run(pipeline);
    await bench.store.pipelines.update(
      pipeline.id,
      { source_query: "SELECT id, upper(title) AS title, modified FROM content.film" },
      { author: "test" },
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "STATE_OF_OTHER_CONFIG" });
    await bench.store.state.keep(pipeline.id);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 0 });
    await bench.store.state.reset(pipeline.id);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 10, rows_written: 10 });
  });

  it("says in its log which tables it does not follow, once per run", async () => {
    await bench.query("CREATE TABLE content.language AS SELECT 1 AS id, 'en' AS name");
    const pipeline = await films(`SELECT n, 'film ' || n, ${OLD} FROM generate_series(1, 10) n`, {
      source_query: "SELECT f.id, l.name, f.modified FROM content.film f, content.language l",
    });
    await bench.stopRunner();
    const lines: string[] = [];
    const { startRunner } = await import("../../src/main/runner.ts");
    const collect = (fields: object, message: string): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log = { debug: collect, info: collect, warn: collect, error: collect };
    const runner = await startRunner(bench.database.settings, bench.database.urls, log);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 10 });
    await runner.stop();
    expect(lines.filter((line) => /does not see changes to these tables.*content\.language/.test(line))).toHaveLength(
      1,
    );
  });

  it("falls back, visibly, to a look-back when it cannot see transactions in flight", async () => {
    const pipeline = await films(`SELECT n, 'film ' || n, clock_timestamp() FROM generate_series(1, 10) n`);
    await bench.query("CREATE ROLE blind_reader LOGIN PASSWORD 'x'").catch(() => undefined);
    await bench.query("GRANT USAGE ON SCHEMA content TO blind_reader; GRANT SELECT ON content.film TO blind_reader");
    await bench.stopRunner();
    const url = new URL(bench.database.url);
    url.username = "blind_reader";
    url.password = "x";
    const lines: string[] = [];
    const { startRunner } = await import("../../src/main/runner.ts");
    const collect = (fields: object, message: string): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log = { debug: collect, info: collect, warn: collect, error: collect };
    const runner = await startRunner(bench.database.settings, { ...bench.database.urls, reader: url.href }, log);
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 10 });
    expect(lines.join("\n")).toContain("pg_read_all_stats");
    // Everything is younger than the look-back, so all of it is read again, and nothing written.
    expect(await bench.run(pipeline)).toMatchObject({ rows_read: 10, rows_written: 0 });
    await runner.stop();
  });

  it("keeps its horizon when it is paused: rows committed late in between are not lost", async () => {
    const pipeline = await films(
      `SELECT n, 'film ' || n, ${OLD} + n * interval '1 second' FROM generate_series(1, 1000) n`,
    );
    const writer = new pg.Client({ connectionString: bench.database.url });
    await writer.connect();
    await writer.query(`BEGIN; INSERT INTO content.film VALUES (100000, 'late', clock_timestamp())`);
    await bench.query("INSERT INTO content.film VALUES (100001, 'after', clock_timestamp())");
    const paused = await runToPause(bench, pipeline);
    const { safePoint, scanPosition, progress, watermark } = await bench.store.state.get(pipeline.id);
    expect(safePoint).not.toBeNull();
    // How far the first load has come is shown, and is no watermark: rows committed late lie before it.
    const [value, id] = scanPosition ?? [];
    expect([progress, watermark]).toEqual([
      { value, id },
      { value: null, id: null },
    ]);
    const resumed = await bench.run(pipeline);
    expect(resumed).toMatchObject({ status: "SUCCESS", resumed: true, rows_read: 1001 - paused.rows_read });
    expect(paused.resumed).toBe(false);
    await writer.query("COMMIT");
    await writer.end();
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 1 });
    await requireEqual(pipeline);
  });

  it("finds the same rows whatever time zone the database has", async () => {
    await bench.query(
      `ALTER DATABASE ${new URL(bench.database.url).pathname.slice(1)} SET timezone = 'America/New_York'`,
    );
    const pipeline = await films(
      `SELECT n, 'x', '2024-03-09 12:00+00'::timestamptz + n * interval '20 minutes' FROM generate_series(1, 200) n`,
    );
    await bench.run(pipeline);
    await bench.query("UPDATE content.film SET title = 'y', modified = modified + interval '10 years' WHERE id <= 5");
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 5 });
    await requireEqual(pipeline);
  });

  it("a query that cannot be entered by an index is read once, not once per batch", async () => {
    await bench.query(`CREATE TABLE content.rating AS
      SELECT n AS id, n % 5000 AS film_id, ${OLD} + n * interval '1 second' AS modified FROM generate_series(1, 50000) n; ANALYZE content.rating`);
    const pipeline = await bench.create({
      source_query: "SELECT film_id, count(*) AS n, max(modified) AS modified FROM content.rating GROUP BY film_id",
      target_key: ["film_id"],
      mode: "incremental",
      incremental_key: "modified",
      incremental_id_key: "film_id",
      batch_size: 100,
    });
    expect(await bench.run(pipeline)).toMatchObject({
      status: "SUCCESS",
      data_path: "stream",
      rows_read: 5000,
      batches: 50,
    });
    await requireEqual(pipeline);
  });
});
