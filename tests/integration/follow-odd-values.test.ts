import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { reasonOf, violations } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** Values that are compared otherwise than usual lead to the same keys in a round as in the query. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(`
    CREATE COLLATION content.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE DOMAIN content.loose AS text COLLATE content.ci`);
  await bench.startRunner();
});
afterAll(() => bench.close());

async function followed(source_query: string, target_key: readonly string[]): Promise<Pipeline> {
  const mart = await bench.create({
    source_query,
    target_key: [...target_key],
    mode: "follow",
    follow: { check_every_seconds: 3600 },
  });
  expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null });
  return mart;
}

async function follows(mart: Pipeline, change: string): Promise<void> {
  await bench.query(change);
  const run = await bench.run(mart);
  expect(run).toMatchObject({ status: "SUCCESS", error: null });
  expect(reasonOf(run)).toBeUndefined();
  expect(await violations(bench, mart)).toEqual([]);
}

describe("a column with a collation of its own", () => {
  const COLUMNS: [what: string, table: string, type: string, on: string][] = [
    ["whose lower case is another", "turkish", `text COLLATE "tr-x-icu"`, "lower(w.word) = t.name"],
    ["that has no upper case", "plain", `text COLLATE "C"`, "upper(w.word) = t.name"],
  ];
  it.each(COLUMNS)("%s leads to the keys that the query finds", async (_, table, type, on) => {
    await bench.query(`
      CREATE TABLE content.${table}_topic (id bigint PRIMARY KEY, name text);
      CREATE TABLE content.${table} (id bigint PRIMARY KEY, word ${type}, note text);
      INSERT INTO content.${table}_topic VALUES (1, 'abc'), (2, 'ı'), (3, 'i'), (4, 'é'), (5, 'É'), (6, 'I');
      INSERT INTO content.${table} VALUES (1, 'ABC'), (2, 'I'), (3, 'é')`);
    const mart = await followed(
      `SELECT t.id AS topic, string_agg(w.word || coalesce(w.note, ''), ' ' ORDER BY w.id) AS words
         FROM content.${table}_topic t LEFT JOIN content.${table} w ON ${on} GROUP BY t.id`,
      ["topic"],
    );
    await follows(mart, `UPDATE content.${table} SET note = '!'`);
    await follows(mart, `INSERT INTO content.${table} VALUES (4, 'Abc'), (5, 'i')`);
    await follows(mart, `UPDATE content.${table} SET word = 'aBc' WHERE id IN (2, 4)`);
    await follows(mart, `DELETE FROM content.${table}`);
  });

  const LOOSE: [what: string, table: string, type: string, key: string, reason: RegExp][] = [
    ["in which case does not count", "words", "text COLLATE content.ci", "id", /compares word, which has a collation/],
    ["of a domain", "loose_words", "content.loose", "id", /compares word, which has a collation/],
    ["that is the key", "spelled", "text COLLATE content.ci", "word", /The key word has a collation/],
  ];
  it.each(LOOSE)("%s is refused: different texts are equal", async (_, table, type, key, reason) => {
    await bench.query(`
      CREATE TABLE content.${table}_topic (id bigint PRIMARY KEY, name text);
      CREATE TABLE content.${table} (id bigint PRIMARY KEY, word ${type})`);
    const mart = await bench.create({
      source_query:
        key === "word"
          ? `SELECT w.word, w.id FROM content.${table} w`
          : `SELECT t.id, count(w.id) AS n FROM content.${table}_topic t LEFT JOIN content.${table} w ON w.word = t.name GROUP BY t.id`,
      target_key: [key],
      mode: "follow",
    });
    const run = await bench.run(mart);
    expect(run).toMatchObject({ status: "FAILED", error_code: "FOLLOW_REFUSED" });
    expect(run.error).toMatch(reason);
  });
});

describe("a column that USING makes of two types, of which one loses digits by becoming the other", () => {
  // 0.1 becomes 0.10000000149011612 by way of a real.
  beforeEach(() =>
    bench.query(`
      CREATE TABLE IF NOT EXISTS content.mixed (id int, x numeric, v int); CREATE TABLE IF NOT EXISTS content.small (x real, w int);
      CREATE TABLE IF NOT EXISTS content.large (x float8, u int); CREATE TABLE IF NOT EXISTS content.number (id float8, n int);
      DELETE FROM content.mixed; DELETE FROM content.small; DELETE FROM content.large; DELETE FROM content.number;
      INSERT INTO content.mixed VALUES (1, 0.1, 1), (2, 0.25, 1); INSERT INTO content.small VALUES (0.1, 1), (0.25, 2);
      INSERT INTO content.large VALUES (0.1, 1), (0.25, 2), (0.10000000149011612, 3);
      INSERT INTO content.number VALUES (0.10000000149011612, 1), (0.25, 2), (0.1, 3)`),
  );

  it.each([
    [
      "leads on by its value as it is converted",
      "SELECT k.id, count(*) AS n, sum(v) AS v FROM content.mixed LEFT JOIN content.small USING (x) JOIN content.number k ON k.id = x GROUP BY k.id",
      "id",
    ],
    [
      "may be converted once more",
      "SELECT x, sum(v) AS v FROM content.mixed LEFT JOIN content.small USING (x) LEFT JOIN content.large USING (x) GROUP BY x",
      "x",
    ],
    [
      "is the same by FULL JOIN",
      "SELECT k.id, sum(v) AS v, sum(w) AS w FROM content.number k JOIN (content.mixed FULL JOIN content.small USING (x)) ON k.id = x GROUP BY k.id",
      "id",
    ],
  ])("%s", async (_, sql, key) => {
    const mart = await followed(sql, [key]);
    await follows(mart, "UPDATE content.mixed SET v = v + 10");
    await follows(mart, "UPDATE content.small SET w = w + 10");
    await follows(mart, "DELETE FROM content.mixed WHERE id = 1");
  });
});

describe("a row without a key", () => {
  const refused = async ({ id }: Pipeline) =>
    (await bench.store.rejects.list(id, { limit: 10 })).items.map(({ row }) => row["note"]).sort();

  it("is refused and named, as in a full load, until it is gone", async () => {
    await bench.query(`
      CREATE TABLE content.keyless (id bigint, part text, note text);
      INSERT INTO content.keyless VALUES (1, 'a', 'one'), (NULL, 'a', 'first')`);
    const mart = await bench.create({
      source_query: "SELECT id, part, note FROM content.keyless",
      target_key: ["id", "part"],
      mode: "follow",
      follow: { check_every_seconds: 3600 },
    });
    expect(await bench.run(mart)).toMatchObject({ rows_rejected: 1 });
    expect(await refused(mart)).toEqual(["first"]);

    await bench.query("INSERT INTO content.keyless VALUES (2, NULL, 'second'), (3, 'c', 'three')");
    const run = await bench.run(mart);
    expect(run).toMatchObject({ rows_read: 3, rows_written: 1, rows_rejected: 2 });
    expect(reasonOf(run)).toBeUndefined();
    expect(await refused(mart)).toEqual(["first", "second"]);

    await bench.query("UPDATE content.keyless SET note = 'other' WHERE id = 1");
    expect(await bench.run(mart)).toMatchObject({ rows_read: 1, rows_rejected: 0 });
    expect(await refused(mart)).toEqual(["first", "second"]);

    await bench.query(
      "UPDATE content.keyless SET part = 'b' WHERE id = 2; DELETE FROM content.keyless WHERE id IS NULL",
    );
    await bench.run(mart);
    expect(await refused(mart)).toEqual([]);
    expect(await violations(bench, mart)).toEqual([]);
  });
});

describe("a key whose text is another when it is cast", () => {
  const refused = async ({ id }: Pipeline) =>
    (await bench.store.rejects.list(id, { limit: 10 })).items.map(({ key }) => key?.["part"]).sort();

  it.each([
    ["boolean", "flag", ["true", "false"], ["f", "t"]],
    ["character(3)", "padded", ["'DE'", "'FR'"], ["DE ", "FR "]],
    ["inet", "address", ["'10.0.0.1'", "'10.0.0.2/32'"], ["10.0.0.1", "10.0.0.2"]],
  ])("of type %s settles the rejects of its rows: written, or gone", async (type, name, [first, second], texts) => {
    await bench.query(`
      CREATE TABLE content.of_${name} (id bigint, part ${type}, note text, PRIMARY KEY (id, part));
      INSERT INTO content.of_${name} VALUES (1, ${first}, 'bad'), (1, ${second}, 'bad'), (2, ${first}, 'good');
      CREATE TABLE analytics.of_${name} (id bigint, part ${type}, note text CHECK (note <> 'bad'), PRIMARY KEY (id, part));
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.of_${name} TO vitrina_writer`);
    const mart = await bench.create({
      source_query: `SELECT id, part, note FROM content.of_${name}`,
      target_table: `analytics.of_${name}`,
      target_key: ["id", "part"],
      mode: "follow",
      follow: { check_every_seconds: 3600 },
    });
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", rows_rejected: 2 });
    expect(await refused(mart)).toEqual(texts);

    await follows(
      mart,
      `UPDATE content.of_${name} SET note = 'good' WHERE part = ${first};
       DELETE FROM content.of_${name} WHERE part = ${second}`,
    );
    expect(await refused(mart)).toEqual([]);
  });
});

describe("a target in whose key different texts are equal", () => {
  it.each([
    ["by its collation", "caseless", "text COLLATE content.ci"],
    ["by its type", "citext", "content.citext"],
    ["by the collation of its domain", "domain", "content.loose"],
  ])("%s is refused, because one of two rows would take the other along", async (_, name, type) => {
    await bench.query(`
      CREATE EXTENSION IF NOT EXISTS citext SCHEMA content;
      CREATE TABLE content.of_${name} (code text PRIMARY KEY, n integer); INSERT INTO content.of_${name} VALUES ('a', 1);
      CREATE TABLE analytics.of_${name} (code ${type} PRIMARY KEY, n integer);
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.of_${name} TO vitrina_writer; GRANT USAGE ON SCHEMA content TO vitrina_writer`);
    const mart = await bench.create({
      source_query: `SELECT code, n FROM content.of_${name}`,
      target_table: `analytics.of_${name}`,
      target_key: ["code"],
      mode: "follow",
      follow: { check_every_seconds: 3600 },
    });
    expect(await bench.run(mart)).toMatchObject({
      status: "FAILED",
      error_code: "TARGET_TYPE_MISMATCH",
      error: expect.stringContaining("takes different texts for the same: rows cannot be deleted by it."),
    });
    await bench.store.pipelines.update(mart.id, { mode: "full" }, { author: "test" });
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
  });
});

describe("a column that others had recorded", () => {
  it("can be dropped: the table is recorded without it from then on", async () => {
    await bench.query(`
      CREATE TABLE content.shared (id bigint PRIMARY KEY, a text, r text);
      INSERT INTO content.shared VALUES (1, 'a', 'r')`);
    const mart = await followed("SELECT id, a FROM content.shared", ["id"]);
    await followed("SELECT id, r FROM content.shared", ["id"]);
    await bench.run(mart);
    await bench.query("ALTER TABLE content.shared DROP COLUMN r; UPDATE content.shared SET a = 'b'");
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null });
    expect(await violations(bench, mart)).toEqual([]);
    await follows(mart, "UPDATE content.shared SET a = 'c'");
  });

  it("may get a type whose values are printed by settings", async () => {
    await bench.query(`
      CREATE TABLE content.typed (id bigint PRIMARY KEY, day text);
      INSERT INTO content.typed VALUES (1, '2024-02-01')`);
    const mart = await followed("SELECT day, count(*) AS number FROM content.typed GROUP BY day", ["day"]);
    await bench.query("ALTER TABLE content.typed ALTER day TYPE date USING day::date");
    await bench.query(`DROP TABLE ${mart.target_table}`);
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null });
    await follows(
      mart,
      "SET DateStyle = 'SQL, DMY'; INSERT INTO content.typed VALUES (2, '2024-03-04'); RESET DateStyle",
    );
  });
});

describe("a table whose changes are left to the sweep", () => {
  it("is read as it is now: what leads through a row that changed in the same round is left to it, too", async () => {
    await bench.query(`
      CREATE TABLE content.owner (id int PRIMARY KEY, name text); INSERT INTO content.owner VALUES (1, 'a'), (2, 'b');
      CREATE TABLE content.house (id int PRIMARY KEY, owner_id int REFERENCES content.owner ON DELETE CASCADE);
      CREATE TABLE content.room (id int PRIMARY KEY, house_id int);
      INSERT INTO content.house VALUES (1, 1), (2, 2); INSERT INTO content.room SELECT n, n % 2 + 1 FROM generate_series(1, 20) n`);
    const mart = await bench.create({
      source_query:
        "SELECT r.id, o.name FROM content.room r JOIN content.house h ON h.id = r.house_id JOIN content.owner o ON o.id = h.owner_id",
      target_key: ["id"],
      mode: "follow",
      follow: { check_every_seconds: 3600, tables: { "content.house": { on_change: "ignore" } } },
      max_delete_percent: 100,
    });
    expect(await bench.run(mart)).toMatchObject({ status: "SUCCESS", error: null });
    await follows(mart, "UPDATE content.owner SET name = 'other' WHERE id = 1");
    // The house is gone with its owner, and nobody knows any more whose rooms these were.
    await bench.query("DELETE FROM content.owner WHERE id = 1");
    const run = await bench.run(mart);
    expect(run).toMatchObject({ status: "SUCCESS", rows_deleted: 0 });
    expect(reasonOf(run)).toBeUndefined();
    expect(await violations(bench, mart)).toHaveLength(10);
  });
});
