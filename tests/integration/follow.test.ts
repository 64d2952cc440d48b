import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { grantSourceAccess } from "../../src/meta-store/roles.ts";
import { CINEMA, FILM_MART, FILMS, reasonOf, untilEqual, violations } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** Marts that follow every change: equal to their query after each run, computing only the keys concerned. */

/** Nobody asks the source by himself: a run happens because a test requests it. */
const BY_HAND = { ...FILM_MART, follow: { check_every_seconds: 3600 } };

describe("a run in follow mode", () => {
  let bench: Bench;
  let films: Pipeline;
  beforeAll(async () => {
    bench = await openBench();
    await bench.query(CINEMA);
    await bench.startRunner();
    films = await bench.create(BY_HAND);
  });
  afterAll(() => bench.close());

  it("compares everything first, says why, and records the changes of a source of its own by itself", async () => {
    const run = await bench.run(films);
    expect(run).toMatchObject({ status: "SUCCESS", error: null, rows_read: 200, rows_written: 200 });
    expect(reasonOf(run)).toBe("Everything was compared. It is the first run.");
    expect(await violations(bench, films)).toEqual([]);
    expect(await bench.store.follow.get(films.id)).toMatchObject({
      position: expect.anything(),
      comparePosition: null,
      compareReason: "It is the first run.",
      tables: expect.arrayContaining(["content.film", "content.film_genre", "content.genre"]),
    });
  });

  it("reads nothing when nothing has changed", async () => {
    expect(await bench.run(films)).toMatchObject({
      status: "SUCCESS",
      strategy: "follow",
      rows_read: 0,
      notes: ["0 changes of the source concerned 0 keys, in 0 rounds."],
    });
  });

  const CHANGES: [what: string, change: string, expected: object][] = [
    [
      "a changed row",
      "UPDATE content.film SET title = 'other' WHERE id = 3",
      { rows_read: 1, rows_written: 1, notes: ["1 change of the source concerned 1 key, in 1 round."] },
    ],
    ["a new row", "INSERT INTO content.film VALUES (201, 'new')", { rows_read: 1, rows_written: 1 }],
    ["a deleted row", "DELETE FROM content.film WHERE id = 4", { rows_read: 0, rows_deleted: 1 }],
    ["a renamed genre", "UPDATE content.genre SET name = 'drama' WHERE id = 1", { rows_read: 20, rows_written: 20 }],
    [
      "a row that moves",
      "UPDATE content.film_genre SET film_id = 201 WHERE film_id = 5",
      { rows_read: 2, rows_written: 2 },
    ],
    ["another key", "UPDATE content.film SET id = 300 WHERE id = 6", { rows_read: 1, rows_deleted: 1 }],
    ["a column that no query reads", "UPDATE content.film SET note = 'x'", { rows_read: 0, batches: 0 }],
  ];
  it.each(CHANGES)("follows %s, and computes only its keys", async (_, change, expected) => {
    await bench.query(change);
    const run = await bench.run(films);
    expect(run).toMatchObject({ status: "SUCCESS", strategy: "follow", data_path: "stream", ...expected });
    expect(reasonOf(run)).toBeUndefined();
    expect(await violations(bench, films)).toEqual([]);
  });

  it("follows a transaction that was open across rounds", async () => {
    const { default: pg } = await import("pg");
    const other = new pg.Client({ connectionString: bench.database.url });
    await other.connect();
    try {
      await other.query("BEGIN; UPDATE content.film SET title = 'late' WHERE id = 10");
      await bench.query("UPDATE content.film SET title = 'early' WHERE id = 11");
      expect(await bench.run(films)).toMatchObject({ rows_read: 1, rows_written: 1 });
      expect(await bench.run(films)).toMatchObject({ rows_read: 0 });
      await other.query("COMMIT");
      expect(await bench.run(films)).toMatchObject({ rows_read: 1, rows_written: 1 });
      expect(await violations(bench, films)).toEqual([]);
    } finally {
      await other.end();
    }
  });

  const COMPARED: [what: string, change: string, reason: RegExp][] = [
    [
      "after TRUNCATE",
      "TRUNCATE content.film_genre; INSERT INTO content.film_genre VALUES (1, 1)",
      /content\.film_genre/,
    ],
    ["when a table gets another type", "ALTER TABLE content.genre ALTER name TYPE varchar USING upper(name)", /genre/],
    ["when the target was emptied", "TRUNCATE analytics.FILMS", /was emptied by somebody\.$/],
    [
      "when the target was rewritten for another type of a column",
      "ALTER TABLE analytics.FILMS ALTER title TYPE varchar(70)",
      /: it was rewritten, as for another type of a column, or emptied and filled\.$/,
    ],
    ["when the state was reset", "RESET", /The position was given up\.$/],
    [
      "when a trigger was off for a while",
      "ALTER TABLE content.film DISABLE TRIGGER USER; UPDATE content.film SET title = 'unseen' WHERE id = 7; ALTER TABLE content.film ENABLE TRIGGER USER",
      /content\.film/,
    ],
  ];
  it.each(COMPARED)("compares everything %s, and says why", async (_, change, reason) => {
    if (change === "RESET") await bench.store.state.reset(films.id);
    else await bench.query(change.replace("analytics.FILMS", films.target_table));
    const run = await bench.run(films);
    if (run.status === "SUCCESS") expect(reasonOf(run)).toMatch(reason);
    else expect(run).toMatchObject({ error_code: "CHANGES_NOT_RECORDED" });
    if (run.status !== "SUCCESS") expect(await bench.run(films)).toMatchObject({ status: "SUCCESS" });
    expect(await violations(bench, films)).toEqual([]);
    expect(reasonOf(await bench.run(films))).toBeUndefined();
  });

  it.each(["by the run", "by a person"])(
    "compares everything when the target got a lost column back %s",
    async (by) => {
      const mart = await bench.create(BY_HAND);
      await bench.run(mart);
      await bench.query(`ALTER TABLE ${mart.target_table} DROP genres`);
      await bench.query("UPDATE content.film SET title = title || '!' WHERE id = 20");
      expect(await bench.run(mart)).toMatchObject({ status: "FAILED", error_code: "TARGET_COLUMN_MISSING" });
      if (by === "by a person") await bench.query(`ALTER TABLE ${mart.target_table} ADD genres text`);
      else await bench.store.pipelines.update(mart.id, { add_columns: true }, { author: "test" });
      const run = await bench.run(mart);
      expect(run).toMatchObject({ status: "SUCCESS", error: null });
      expect(reasonOf(run)).toMatch(/has lost "genres"/);
      expect(await violations(bench, mart)).toEqual([]);
      expect(reasonOf(await bench.run(mart))).toBeUndefined();
    },
  );

  it("compares everything when the target is another one, and what it wrote before is left alone", async () => {
    const moved = await bench.create(BY_HAND);
    await bench.run(moved);
    const target_table = `${moved.target_table}_2`;
    await bench.store.pipelines.update(moved.id, { target_table }, { author: "test" });
    const run = await bench.run(moved);
    expect(reasonOf(run)).toMatch(/The query, its key or its target is another than before\./);
    expect(await violations(bench, { ...moved, target_table })).toEqual([]);
  });

  it("compares everything once in a run, however often there is reason for it", async () => {
    await bench.query(`CREATE TABLE content.rate (name text PRIMARY KEY, rate numeric); INSERT INTO content.rate VALUES ('a', 1);
      CREATE TABLE content.price (id bigint PRIMARY KEY, price numeric); INSERT INTO content.price VALUES (1, 10), (2, 20)`);
    const prices = await bench.create({
      source_query: "SELECT p.id, p.price * (SELECT max(rate) FROM content.rate) AS price FROM content.price p",
      target_key: ["id"],
      mode: "follow",
      follow: { check_every_seconds: 3600, tables: { "content.rate": { on_change: "everything" } } },
    });
    await bench.run(prices);
    await bench.query("UPDATE content.rate SET rate = 2");
    const run = await bench.run(prices);
    expect(run.notes.filter((note) => note.startsWith("Everything was compared"))).toEqual([
      "Everything was compared. content.rate was changed, and every row depends on it.",
    ]);
    expect(await violations(bench, prices)).toEqual([]);
  });

  it("compares everything when more keys than the limit are concerned", async () => {
    await bench.query(`CREATE TABLE content.many (id bigint PRIMARY KEY, n int);
      INSERT INTO content.many SELECT n, 0 FROM generate_series(1, 4000) n`);
    const many = await bench.create({ ...BY_HAND, source_query: "SELECT id, n FROM content.many", target_key: ["id"] });
    await bench.run(many);
    await bench.query("UPDATE content.many SET n = 1 WHERE id <= 1100");
    expect(await bench.run(many)).toMatchObject({ strategy: "follow", rows_written: 1100 });
    await bench.query("UPDATE content.many SET n = 2 WHERE id <= 1300");
    const run = await bench.run(many);
    expect(reasonOf(run)).toMatch(/1,300 keys were concerned, more than 30 % of 4,000 rows\./);
    expect(run.rows_written).toBe(1300);
    await bench.query("UPDATE content.many SET n = 3");
    await bench.store.pipelines.update(many.id, { follow: { ...many.follow, max_changes: 3999 } }, { author: "test" });
    expect(reasonOf(await bench.run(many))).toMatch(/More than 3,999 rows were changed\./);
    expect(await violations(bench, many)).toEqual([]);
  });
});

describe("what stops a run in follow mode", () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await openBench();
    await bench.query(CINEMA);
    await bench.startRunner();
    return () => bench.close();
  });

  it("a query that cannot be followed is refused before anything is read", async () => {
    const last = await bench.create({ ...BY_HAND, source_query: `${FILMS} ORDER BY f.id LIMIT 5` });
    const run = await bench.run(last);
    expect(run).toMatchObject({
      status: "FAILED",
      error_code: "FOLLOW_REFUSED",
      error: expect.stringContaining("LIMIT"),
      rows_read: 0,
    });
    // The LIMIT stops three tables, and the way out of all of them is the same.
    expect(run.error?.split("follow.tables")).toHaveLength(2);
  });

  it("a key that cannot be computed from a row that the query leaves out does not stop the mart", async () => {
    await bench.query(`CREATE TABLE content.mixed (kind text, v text); INSERT INTO content.mixed VALUES ('n', '1'), ('s', 'one');
      GRANT SELECT ON content.mixed TO vitrina_reader`);
    const source_query = "SELECT v::int AS id, count(*) AS n FROM content.mixed WHERE kind = 'n' GROUP BY v::int";
    const numbers = await bench.create({ ...BY_HAND, source_query, target_key: ["id"] });
    expect(await bench.run(numbers)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    await bench.query("INSERT INTO content.mixed VALUES ('s', 'two'), ('n', '2')");
    const run = await bench.run(numbers);
    expect(run).toMatchObject({ status: "SUCCESS" });
    expect(reasonOf(run)).toMatch(/A key could not be computed/);
    expect(await violations(bench, numbers)).toEqual([]);
  });

  it("too many deletions are refused before the first of them, and an empty source too", async () => {
    const films = await bench.create({ ...BY_HAND, max_delete_percent: 10 });
    await bench.run(films);
    await bench.query("DELETE FROM content.film WHERE id <= 20");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_deleted: 20 });
    await bench.query("DELETE FROM content.film WHERE id <= 40");
    expect(await bench.run(films)).toMatchObject({
      status: "FAILED",
      error_code: "TOO_MANY_DELETIONS",
      error: expect.stringMatching(/^The load would delete 20 of 180 rows of .*, and stopped before that\./),
      batches: 0,
    });
    expect(await bench.rowsOf(films.target_table)).toHaveLength(180);
    await bench.store.pipelines.update(films.id, { max_delete_percent: 100 }, { author: "test" });
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_deleted: 20 });
    await bench.query("DELETE FROM content.film");
    expect(await bench.run(films)).toMatchObject({ status: "FAILED", error_code: "SOURCE_EMPTY", batches: 0 });
    await bench.store.pipelines.update(films.id, { allow_empty: true }, { author: "test" });
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_deleted: 160 });
    // A target that is rightly empty is not one that somebody emptied.
    await bench.query("INSERT INTO content.film VALUES (1, 'one')");
    const run = await bench.run(films);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    expect(reasonOf(run)).toBeUndefined();
  });

  it("a key that two rows have by now is refused, and nothing of it is written until one is gone", async () => {
    const source_query = `SELECT f.id AS film_id, f.title, g.name AS genre FROM content.film f
      JOIN content.film_genre fg ON fg.film_id = f.id JOIN content.genre g ON g.id = fg.genre_id`;
    const films = await bench.create({ ...BY_HAND, source_query });
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_written: 200 });
    await bench.query("INSERT INTO content.film_genre VALUES (3, 9)");
    const before = await bench.rowsOf(films.target_table);
    const refused = { status: "FAILED", error_code: "KEY_NOT_UNIQUE_IN_SOURCE" };
    expect(await bench.run(films)).toMatchObject(refused);
    expect(await bench.rowsOf(films.target_table)).toEqual(before);
    // The change is not forgotten because a run has met it.
    await bench.query("UPDATE content.film SET title = 'other' WHERE id = 8");
    expect(await bench.run(films)).toMatchObject(refused);
    await bench.query("DELETE FROM content.film_genre WHERE film_id = 3 AND genre_id <> 9");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", strategy: "follow", rows_written: 2 });
    expect(await violations(bench, films)).toEqual([]);
  });

  it("refused rows are kept per key, and settled when their row is accepted, or gone", async () => {
    await bench.query(`CREATE TABLE analytics.short (film_id bigint PRIMARY KEY, title varchar(10), genres text);
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.short TO vitrina_writer`);
    const films = await bench.create({ ...BY_HAND, target_table: "analytics.short" });
    await bench.run(films);
    await bench.query("UPDATE content.film SET title = 'much too long for it' WHERE id IN (1, 2, 3)");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_rejected: 3, rows_deleted: 0 });
    const rejected = async () =>
      (await bench.store.rejects.list(films.id, { limit: 10 })).items.map(({ key }) => key?.["film_id"]).sort();
    expect(await rejected()).toEqual(["1", "2", "3"]);
    await bench.query("UPDATE content.film SET title = 'good' WHERE id = 1; DELETE FROM content.film WHERE id = 2");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_written: 1, rows_deleted: 1 });
    expect(await rejected()).toEqual(["3"]);
    await bench.query("ALTER TABLE analytics.short ALTER title TYPE text");
    await bench.store.rejects.retry(films.id, undefined);
    expect(await bench.ended(films)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    expect(await rejected()).toEqual([]);
    expect(await violations(bench, films)).toEqual([]);
  });
});

describe("a pipeline that follows by itself", () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await openBench();
    await bench.query(CINEMA);
    await bench.startRunner();
  });
  afterAll(() => bench.close());

  it("starts when it is new or has another query, and not again while its source is quiet", async () => {
    const films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 0.1 } });
    expect(await bench.ended(films)).toMatchObject({ trigger: "change", status: "SUCCESS", rows_written: 200 });
    const source_query = `${FILMS} WHERE f.id > 10`;
    await bench.store.pipelines.update(films.id, { source_query }, { author: "test" });
    await untilEqual(bench, { ...films, source_query });
    expect(await bench.ended(films)).toMatchObject({ trigger: "change", status: "SUCCESS" });
    // Another one is followed meanwhile, so the source is asked.
    await bench.query("CREATE TABLE content.other (id bigint PRIMARY KEY); INSERT INTO content.other VALUES (1)");
    const other = await bench.create({ ...FILM_MART, source_query: "SELECT id AS film_id FROM content.other" });
    await untilEqual(bench, await bench.ended(other).then(() => other));
    await bench.query("INSERT INTO content.other VALUES (2)");
    await untilEqual(bench, other);
    expect((await bench.store.runs.list(films.id, { limit: 10 })).items).toHaveLength(2);
  });

  it("starts when its source changes, by one request for each change", async () => {
    const films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 0.1 } });
    await bench.run(films);
    await bench.query("UPDATE content.genre SET name = 'by itself' WHERE id = 2");
    await untilEqual(bench, films);
    await bench.ended(films);
    const [run] = (await bench.store.runs.list(films.id, { limit: 1 })).items;
    expect(run).toMatchObject({ trigger: "change", status: "SUCCESS", rows_written: 20 });
    // What was followed is no reason for a further run.
    const { position } = await bench.store.follow.get(films.id);
    expect(position).not.toBeNull();
    expect(await bench.store.follow.watched()).toContainEqual(expect.objectContaining({ id: films.id }));
  });

  it("is left alone while it is paused, and catches up afterwards", async () => {
    const films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 0.1 } });
    await bench.run(films);
    await bench.query("UPDATE etl.etl_pipelines SET status = 'PAUSED' WHERE id = $1", [films.id]);
    await bench.query("UPDATE content.genre SET name = 'while paused' WHERE id = 3");
    const other = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 0.1 } });
    await bench.run(other);
    await bench.query("UPDATE content.genre SET name = 'while paused, again' WHERE id = 3");
    await untilEqual(bench, other);
    expect(await violations(bench, films)).not.toEqual([]);
    await bench.store.requests.run(films.id, "api");
    await untilEqual(bench, films);
  });

  it("compares everything by itself when it becomes again what it was, and another query has written its target", async () => {
    const films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 0.1 } });
    await bench.run(films);
    const { mode, source_query } = films;
    const other = { mode: "full", source_query: `${FILMS} WHERE f.id > 10` } as const;
    await bench.store.pipelines.update(films.id, other, { author: "test" });
    await bench.run(films);
    await bench.store.pipelines.update(films.id, { mode, source_query }, { author: "test" });
    await untilEqual(bench, films);
    expect(reasonOf(await bench.ended(films))).toMatch(/with another query or key since the checkpoint\./);
  });

  it("becomes one that follows by a change of its mode, without a reset", async () => {
    await bench.query(`CREATE TABLE content.stamped (id bigint PRIMARY KEY, title text, modified timestamptz DEFAULT now());
      INSERT INTO content.stamped SELECT n, 'row ' || n FROM generate_series(1, 50) n`);
    const rows = await bench.create({
      source_query: "SELECT id, title, modified FROM content.stamped",
      target_key: ["id"],
      mode: "incremental",
      incremental_key: "modified",
    });
    await bench.run(rows);
    await bench.query("DELETE FROM content.stamped WHERE id <= 10");
    await bench.store.pipelines.update(rows.id, { mode: "follow" }, { author: "test" });
    const first = await bench.run(rows);
    expect(first).toMatchObject({ status: "SUCCESS", rows_written: 0, rows_deleted: 10 });
    expect(reasonOf(first)).toMatch(/It is the first run\./);
    await bench.query("DELETE FROM content.stamped WHERE id = 11");
    await untilEqual(bench, rows);
  });
});

describe("a chain of marts", () => {
  it("is followed from its source to its end", async () => {
    const bench = await openBench({ SOURCE_SCHEMAS: "content,analytics" });
    try {
      await bench.query(CINEMA);
      // As at every start: the marts that are made afterwards can be read without another one.
      await grantSourceAccess(bench.database.url, ["content", "analytics"]);
      await bench.startRunner();
      const follow = { check_every_seconds: 0.1 };
      const films = await bench.create({ ...FILM_MART, follow });
      await bench.run(films);
      const byGenre = await bench.create({
        source_query: `SELECT genres, count(*) AS films FROM ${films.target_table} WHERE genres IS NOT NULL GROUP BY genres`,
        target_key: ["genres"],
        mode: "follow",
        follow,
      });
      await bench.run(byGenre);
      await bench.query("UPDATE content.genre SET name = 'at the end of a chain' WHERE id = 2");
      await until("the change has come to the end", async () => {
        const rows = await bench.rowsOf(byGenre.target_table);
        return rows.some((row) => row.includes("at the end of a chain")) ? true : undefined;
      });
      expect(await violations(bench, byGenre)).toEqual([]);
    } finally {
      await bench.close();
    }
  });
});
