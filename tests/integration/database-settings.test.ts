import { afterAll, beforeAll, expect, it } from "vitest";
import { CINEMA, FILM_MART, violations } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** What somebody has set for the whole database, or for a role, must not reach our sessions. */

const SETTINGS = {
  DateStyle: "'SQL, DMY'",
  IntervalStyle: "iso_8601",
  TimeZone: "'Asia/Kathmandu'",
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  lock_timeout: "'1ms'",
  idle_in_transaction_session_timeout: "'300ms'",
  standard_conforming_strings: "off",
  array_nulls: "off",
  xmloption: "document",
  transform_null_equals: "on",
};

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(CINEMA);
  const [database] = await bench.query("SELECT quote_ident(current_database()) AS name");
  for (const [name, value] of Object.entries(SETTINGS)) {
    await bench.query(`ALTER DATABASE ${database?.["name"]} SET ${name} = ${value}`);
  }
  // Those that are there already have the old ones.
  await bench.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()`);
});
afterAll(() => bench.close());

it("a mart is loaded and followed whatever the database has as defaults", async () => {
  await bench.startRunner();
  const films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 3600 } });
  expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", error: null, rows_written: 200 });
  await bench.query("UPDATE content.genre SET name = 'drama' WHERE id = 1");
  const run = await bench.run(films);
  expect(run).toMatchObject({ status: "SUCCESS", error: null, strategy: "follow", rows_written: 20 });
  expect(run.started_at).toBeInstanceOf(Date);
  expect(await violations(bench, films)).toEqual([]);
});

it("a round lasts, although its snapshot idles longer than the database allows while chunks are written", async () => {
  const films = await bench.create({
    ...FILM_MART,
    batch_size: 1, // five keys per chunk
    retry_for_seconds: 0,
    follow: { check_every_seconds: 3600 },
  });
  expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", error: null });
  await bench.query(`CREATE TABLE content.idled (sessions bigint);
    CREATE FUNCTION content.slow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
      PERFORM pg_sleep(0.7);
      INSERT INTO content.idled SELECT count(*) FROM pg_stat_activity
       WHERE datname = current_database() AND usename = 'vitrina_reader' AND state = 'idle in transaction'
         AND clock_timestamp() - state_change > '300ms';
      RETURN NULL;
    END $$;
    CREATE TRIGGER slow AFTER INSERT OR UPDATE ON ${films.target_table} EXECUTE FUNCTION content.slow()`);
  await bench.query("UPDATE content.genre SET name = 'comedy' WHERE id = 1");
  const run = await bench.run(films);
  const writes = await bench.query("SELECT sessions FROM content.idled");
  expect(run).toMatchObject({ status: "SUCCESS", error: null, strategy: "follow", rows_written: 20 });
  expect(writes.filter(({ sessions }) => Number(sessions) > 0).length).toBeGreaterThan(1);
  expect(await violations(bench, films)).toEqual([]);
});

it("values arrive as they are, and a query means the same on each way", async () => {
  await bench.query(`CREATE TABLE content.list (id int PRIMARY KEY, tags text[], page xml, slash text);
    SET xmloption = content;
    INSERT INTO content.list SELECT n, ARRAY['a', NULL, 'NULL'], '<a/>text', E'\\\\' FROM generate_series(1, 20) n`);
  const lists = await bench.create({
    source_query: "SELECT id, tags, page, slash, slash = '\\\\' AS two, tags = NULL AS unknown FROM content.list",
    target_key: ["id"],
    mode: "follow",
    follow: { check_every_seconds: 3600 },
  });
  const has = async (): Promise<unknown> =>
    bench.query(`SELECT DISTINCT array_position(tags, NULL) AS place, page::text AS page, length(slash) AS slash, two, unknown
                   FROM ${lists.target_table}`);
  const expected = [{ place: 2, page: "<a/>text", slash: 1, two: false, unknown: null }];
  expect(await bench.run(lists)).toMatchObject({ status: "SUCCESS", error: null, rows_written: 20 });
  expect(await has()).toEqual(expected);
  await bench.query("UPDATE content.list SET tags = tags || ARRAY['b'] WHERE id < 3");
  expect(await bench.run(lists)).toMatchObject({ strategy: "follow", rows_written: 2, rows_rejected: 0 });
  expect(await has()).toEqual(expected);
});

it("concurrent requests wait for each other instead of failing", async () => {
  const other = await bench.create({ ...FILM_MART, enabled: false, follow: { check_every_seconds: 3600 } });
  const changes = Array.from({ length: 8 }, (_, n) =>
    bench.store.pipelines
      .update(other.id, { max_rejects: n }, { author: "test" })
      .then(({ max_rejects }) => max_rejects),
  );
  expect(await Promise.all(changes)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});
