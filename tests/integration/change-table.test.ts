import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { relationName } from "../../src/domain/relation-name.ts";
import type { FollowedTable, ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import {
  type FollowedQuery,
  type FollowedSource,
  followIn,
  keyedTable,
  LIMITS,
  openFollowedSource,
} from "../support/followed-source.ts";

/** What the triggers record is what a round finds: every change once, and nothing that is not a change. */

const ID = { name: "id", type: "bigint" };
const FILM = keyedTable("content", "film", ID, ["title"]);
const RATING = keyedTable("content", "rating", { name: "film_id", type: "bigint" }, ["score"]);

const FILMS = {
  query: `SELECT f.id, f.title, (SELECT count(*) FROM content.rating r WHERE r.film_id = f.id) AS ratings FROM content.film f`,
  key: ["id"],
  columns: [ID, { name: "title", type: "text" }, { name: "ratings", type: "bigint" }],
  tables: [FILM, RATING],
};
const NOTHING = { kind: "keys", changes: 0, keys: [] };
const keys = (...ids: number[]) => ids.map((id) => [String(id)]);

let source: FollowedSource;
beforeAll(async () => {
  source = await openFollowedSource();
});
afterAll(() => source.drop());

describe("a round", () => {
  let films: FollowedQuery;
  beforeAll(async () => {
    await source.query(`
      CREATE TABLE content.film (id bigint PRIMARY KEY, title text, seen_at timestamptz);
      CREATE TABLE content.rating (id bigint PRIMARY KEY, film_id bigint, score integer);
      INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 20) n;
      INSERT INTO content.rating SELECT n, n % 20 + 1, n FROM generate_series(1, 40) n`);
    await source.install([FILM, RATING]);
    films = await source.follow(FILMS);
  });

  it("finds the keys of rows that were added, changed, moved and deleted", async () => {
    const start = await films.start();
    expect(await films.since(start)).toEqual(NOTHING);
    await source.query("UPDATE content.film SET title = 'other' WHERE id = 3");
    await source.query("INSERT INTO content.film VALUES (21, 'new')");
    await source.query("DELETE FROM content.film WHERE id = 4");
    await source.query("UPDATE content.rating SET film_id = 8 WHERE id = 6");
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 4, keys: keys(21, 3, 4, 7, 8) });
    expect(await films.since(await films.start())).toEqual(NOTHING);
  });

  it("reads the rows of keys in its own snapshot, also while they change", async () => {
    const rows = await films.inRound(async (round) => {
      await source.query("UPDATE content.film SET title = 'too late' WHERE id = 5");
      const reader = await round.open(keys(5, 4));
      const batch = await reader.read(10);
      expect(batch.isLast).toBe(true);
      const again = await round.open(keys(6));
      expect((await again.read(10)).rows()).toEqual([["6", "film 6", "2"]]);
      return batch.rows();
    });
    expect(rows).toEqual([["5", "film 5", "2"]]);
  });

  it("knows between rounds whether there is a change, and whether its first plan still holds", async () => {
    const own = await source.follow(FILMS);
    const start = await own.start();
    expect(await own.follower.hasChangedSince(start)).toBe(false);
    await source.query("UPDATE content.film SET title = 'another' WHERE id = 9");
    expect(await own.follower.hasChangedSince(start)).toBe(true);
    expect(await own.follower.isCurrent()).toBe(true);
    await source.query("ALTER TABLE content.film ADD COLUMN added integer");
    expect(await own.follower.isCurrent()).toBe(false);
    // The round makes another plan, but what was examined before it is still what was there first.
    await own.start();
    expect(await own.follower.isCurrent()).toBe(false);
  });

  it("goes on with another session after a read that was given up half-way", async () => {
    await films.inRound(async (round) => {
      const reader = await round.open(keys(1, 2, 3, 5, 6, 7, 8));
      expect((await reader.read(1)).count).toBe(1);
      await reader.close();
      await expect(round.open(keys(1))).rejects.toMatchObject({ code: "INTERNAL" });
    });
    expect(await films.since(await films.start())).toEqual(NOTHING);
  });

  it("lends its snapshot to a read of everything", async () => {
    await films.inRound(async ({ exportedSnapshot }) => {
      await source.query("INSERT INTO content.film VALUES (50, 'too late')");
      const other = await source.connect();
      await other.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '${exportedSnapshot}'`);
      expect((await other.query("SELECT FROM content.film WHERE id = 50")).rowCount).toBe(0);
    });
  });

  it("finds a transaction exactly once that began before the position and was committed after it", async () => {
    const slow = await source.connect();
    await slow.query("BEGIN");
    await slow.query("UPDATE content.film SET title = 'slow' WHERE id = 10");
    await source.query("UPDATE content.film SET title = 'quick' WHERE id = 11");
    const start = await films.start();
    await source.query("UPDATE content.film SET title = 'quick' WHERE id = 12");
    expect(await films.since(start)).toMatchObject({ keys: keys(12) });
    const between = await films.start();
    await slow.query("COMMIT");
    expect(await films.since(start)).toMatchObject({ keys: keys(10, 12) });
    expect(await films.since(between)).toEqual({ kind: "keys", changes: 1, keys: keys(10) });
    expect(await films.since(await films.start())).toEqual(NOTHING);
  });

  it("knows nothing of what was rolled back, also in a part of a transaction", async () => {
    const start = await films.start();
    const session = await source.connect();
    await session.query("BEGIN; UPDATE content.film SET title = 'never' WHERE id = 13; ROLLBACK");
    await session.query(`BEGIN; UPDATE content.film SET title = 'kept' WHERE id = 14; SAVEPOINT s;
      UPDATE content.film SET title = 'never' WHERE id = 15; ROLLBACK TO s; COMMIT`);
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 1, keys: keys(14) });
  });

  it("does not mind columns that no query reads, and minds 1.0 that became 1.00", async () => {
    await source.query("CREATE TABLE content.price (id bigint PRIMARY KEY, amount numeric, doc json, other integer)");
    await source.query(`INSERT INTO content.price VALUES (1, 1.0, '{"a": 1}')`);
    const table = keyedTable("content", "price", ID, ["amount", "doc"]);
    await source.install([table]);
    const columns = [ID, { name: "amount", type: "numeric" }];
    const prices = await source.follow({
      query: "SELECT id, amount FROM content.price",
      key: ["id"],
      columns,
      tables: [table],
    });
    const start = await prices.start();
    await source.query("UPDATE content.price SET other = 2, amount = amount, doc = doc");
    expect(await prices.since(start)).toEqual(NOTHING);
    await source.query("UPDATE content.price SET amount = 1.00");
    expect(await prices.since(start)).toMatchObject({ changes: 1 });
    await source.query(`UPDATE content.price SET doc = '{"a":1}'`);
    expect(await prices.since(start)).toMatchObject({ changes: 2 });
  });

  it("sees what a session writes that replays the changes of another server", async () => {
    const start = await films.start();
    const replica = await source.connect();
    await replica.query("SET session_replication_role = replica");
    await replica.query("UPDATE content.film SET title = 'replayed' WHERE id = 16");
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 1, keys: keys(16) });
  });

  it("compares everything above the limits, and when a table says so", async () => {
    const start = await films.start();
    await source.query("UPDATE content.film SET title = title || '!' WHERE id <= 3");
    expect(await films.since(start, { maxChanges: 3, maxKeys: 3 })).toMatchObject({ kind: "keys", changes: 3 });
    expect(await films.since(start, { maxChanges: 2, maxKeys: 3 })).toEqual({
      kind: "everything",
      reason: "More than 2 rows were changed.",
    });
    expect(await films.since(start, { maxChanges: 3, maxKeys: 2 })).toEqual({
      kind: "everything",
      reason: "More than 2 keys are concerned.",
    });
    const whole: FollowedTable = { ...FILM, change: { kind: "everything" } };
    const ignored: FollowedTable = { ...RATING, change: { kind: "ignore" } };
    const other = await source.follow({ ...FILMS, tables: [whole, ignored] });
    const position = await other.start();
    await source.query("DELETE FROM content.rating WHERE id = 1");
    expect(await other.since(position)).toEqual(NOTHING);
    await source.query("DELETE FROM content.film WHERE id = 1");
    expect(await other.since(position)).toEqual({
      kind: "everything",
      reason: "content.film was changed, and every row depends on it.",
    });
  });

  it("compares everything where finding the keys takes too long, and goes on in the same session", async () => {
    await source.query(
      "CREATE TABLE content.slow (id bigint PRIMARY KEY, pause integer); INSERT INTO content.slow VALUES (4), (5)",
    );
    const table = { schema: "content", name: "slow" };
    const slow: FollowedTable = {
      ...keyedTable("content", "slow", ID, ["pause"]),
      imageColumns: [ID, { name: "pause", type: "integer" }],
      change: {
        kind: "keys",
        statement: (images: ImagesOf) =>
          `SELECT c.id FROM ${images(table).changed} AS c WHERE c.pause = 0 OR (c.pause > 0 AND pg_sleep(c.pause) IS NULL)`,
      },
    };
    await source.install([slow]);
    const query = { query: "SELECT id FROM content.slow", key: ["id"], columns: [ID], tables: [slow] };
    const impatient = await followIn({ ...source.config, readTimeoutMs: 2000 }, query);
    try {
      const start = await impatient.start();
      await source.query("UPDATE content.slow SET pause = 60 WHERE id = 4");
      const reason = "Finding the keys of the changes took too long.";
      expect(await impatient.since(start)).toEqual({ kind: "everything", reason });
      const next = await impatient.start();
      await source.query("UPDATE content.slow SET pause = 0 WHERE id = 5");
      expect(await impatient.since(next)).toEqual({ kind: "keys", changes: 1, keys: keys(5) });
    } finally {
      await impatient.follower.close();
    }
  });

  it("answers for many positions by one question", async () => {
    const [before, watch] = [await films.start(), source.watch()];
    await source.query("UPDATE content.rating SET score = score + 1 WHERE id = 2");
    const after = await films.start();
    const asked = (pipelineId: string, position: typeof before, ...tables: string[]) => ({
      pipelineId,
      position,
      tables,
    });
    expect(
      await watch.changedSince([
        asked("both", before, "content.film", "content.rating"),
        asked("now", after, "content.film", "content.rating"),
        asked("ratings", before, "content.rating"),
      ]),
    ).toEqual(["both", "ratings"]);
    expect(await watch.changedSince([])).toEqual([]);
  });

  it("cannot be made to run a second statement", async () => {
    const follower = await source.follow({ ...FILMS, query: `${FILMS.query}; DROP TABLE content.film` });
    await follower.inRound(async (round) => {
      await expect(round.open(keys(1))).rejects.toMatchObject({ code: "SOURCE_QUERY_FAILED" });
    });
  });
});

describe("a table in parts", () => {
  it.each(["partitions", "inheritance"])("by %s is recorded, whichever part is written", async (kind) => {
    const name = `in_${kind}`;
    const columns = "(id bigint, region text, title text)";
    await source.query(
      kind === "partitions"
        ? `CREATE TABLE content.${name} ${columns} PARTITION BY LIST (region);
           CREATE TABLE content.${name}_a PARTITION OF content.${name} FOR VALUES IN ('a');
           CREATE TABLE content.${name}_b PARTITION OF content.${name} FOR VALUES IN ('b') PARTITION BY RANGE (id);
           CREATE TABLE content.${name}_b_1 PARTITION OF content.${name}_b FOR VALUES FROM (0) TO (1000)`
        : `CREATE TABLE content.${name} ${columns};
           CREATE TABLE content.${name}_a (extra text) INHERITS (content.${name});
           CREATE TABLE content.${name}_b (more integer) INHERITS (content.${name})`,
    );
    const table = keyedTable("content", name, ID, ["region", "title"]);
    await source.install([table]);
    await source.install([table]);
    const query = `SELECT id, title FROM content.${name}`;
    const parts = await source.follow({
      query,
      key: ["id"],
      columns: [ID, { name: "title", type: "text" }],
      tables: [table],
    });
    const start = await parts.start();
    await source.query(`INSERT INTO content.${name}_a (id, region) VALUES (1, 'a')`);
    await source.query(`INSERT INTO content.${name}_b (id, region) VALUES (2, 'b')`);
    if (kind === "partitions") await source.query(`INSERT INTO content.${name} (id, region) VALUES (3, 'a')`);
    else await source.query(`INSERT INTO content.${name} (id, region) VALUES (3, 'c')`);
    expect(await parts.since(start)).toMatchObject({ keys: keys(1, 2, 3) });
    const next = await parts.start();
    // Between partitions it is deleted from the one and added to the other.
    await source.query(`UPDATE content.${name} SET region = 'b' WHERE id = 1`);
    await source.query(`UPDATE content.${name} SET title = 'x' WHERE id = 2`);
    await source.query(`DELETE FROM content.${name} WHERE id = 3`);
    expect(await parts.since(next)).toMatchObject({ changes: kind === "partitions" ? 4 : 3, keys: keys(1, 2, 3) });
  });

  it("records the rows of a partition that was attached later, and of one with its columns in another order", async () => {
    await source.query(`CREATE TABLE content.later (id bigint, region text, title text) PARTITION BY LIST (region);
      CREATE TABLE content.later_c (gone integer, title text, region text, id bigint); ALTER TABLE content.later_c DROP gone`);
    const table = keyedTable("content", "later", ID, ["region", "title"]);
    await source.install([table]);
    const query = "SELECT id, title FROM content.later";
    const later = await source.follow({
      query,
      key: ["id"],
      columns: [ID, { name: "title", type: "text" }],
      tables: [table],
    });
    await source.query("ALTER TABLE content.later ATTACH PARTITION content.later_c FOR VALUES IN ('c')");
    const start = await later.start();
    const replica = await source.connect();
    await replica.query("SET session_replication_role = replica");
    await replica.query("INSERT INTO content.later_c (id, region) VALUES (7, 'c')");
    expect(await later.since(start)).toMatchObject({ changes: 1, keys: keys(7) });
  });

  it("is refused where a new child has no trigger yet, or is stored elsewhere", async () => {
    await source.query("CREATE TABLE content.parent (id bigint, title text)");
    const table = keyedTable("content", "parent", ID, ["title"]);
    await source.install([table]);
    const query = "SELECT id, title FROM content.parent";
    const all = await source.follow({
      query,
      key: ["id"],
      columns: [ID, { name: "title", type: "text" }],
      tables: [table],
    });
    await all.start();
    await source.query("CREATE TABLE content.child () INHERITS (content.parent)");
    const message = "content.child has no trigger that records its changes.";
    await expect(all.start()).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED", message });
    await source.install([table]);
    await all.start();
    await source.query("ALTER TABLE content.child SET UNLOGGED");
    await expect(all.start()).rejects.toThrow("content.child is unlogged: a crash of the server empties it silently.");
  });
});

describe("names and keys", () => {
  it("may be as odd as they like", async () => {
    const schema = `Odd "$function$" schéma`;
    const [name, id, text] = [`Order Lines; --\n'"$1`, `the "id" $$ 'x' \\`, "é $function_$"];
    const quote = (part: string): string => `"${part.replaceAll('"', '""')}"`;
    const table = `${quote(schema)}.${quote(name)}`;
    await source.query(`CREATE SCHEMA ${quote(schema)}; GRANT USAGE ON SCHEMA ${quote(schema)} TO vitrina_reader;
      CREATE TABLE ${table} (${quote(id)} integer, ${quote(text)} text); GRANT SELECT ON ${table} TO vitrina_reader`);
    const followed = keyedTable(schema, name, { name: id, type: "integer" }, [text]);
    await source.install([followed]);
    await source.install([followed]);
    const query = `SELECT ${quote(id)} AS id, ${quote(text)} AS title FROM ${table}`;
    const columns = [
      { name: "id", type: "integer" },
      { name: "title", type: "text" },
    ];
    const lines = await source.follow({ query, key: ["id"], columns, tables: [followed] });
    const start = await lines.start();
    await source.query(`INSERT INTO ${table} VALUES (1, 'a'); UPDATE ${table} SET ${quote(id)} = 2`);
    expect(await lines.since(start)).toEqual({ kind: "keys", changes: 2, keys: keys(1, 2) });
    await source.query(`TRUNCATE ${table}`);
    expect(await lines.since(start)).toMatchObject({ kind: "everything" });
    const watch = source.watch();
    const next = await lines.start();
    const watched = { pipelineId: "p", position: next, tables: [relationName({ schema, name })] };
    expect(await watch.changedSince([watched])).toEqual([]);
    await source.query(`INSERT INTO ${table} VALUES (3, 'c')`);
    expect(await watch.changedSince([watched])).toEqual(["p"]);
  });

  it("of several columns come together, from images and from what is there beside the old", async () => {
    await source.query(`CREATE TABLE content.stock (store integer, film integer, PRIMARY KEY (store, film));
      CREATE TABLE content.store (id integer PRIMARY KEY, title text)`);
    const stock: FollowedTable = {
      schema: "content",
      name: "stock",
      imageColumns: ["store", "film"].map((name) => ({ name, type: "integer" })),
      readColumns: ["store", "film"],
      change: {
        kind: "keys",
        statement: (images: ImagesOf) =>
          `SELECT DISTINCT c.store, c.film FROM ${images({ schema: "content", name: "stock" }).changed} AS c`,
      },
    };
    const store: FollowedTable = {
      schema: "content",
      name: "store",
      imageColumns: [{ name: "id", type: "integer" }],
      readColumns: ["id", "title"],
      change: {
        kind: "keys",
        statement: (images: ImagesOf) =>
          `SELECT DISTINCT s.store, s.film FROM ${images({ schema: "content", name: "store" }).changed} AS c
             JOIN (SELECT store, film FROM content.stock UNION ALL
                   SELECT store, film FROM ${images({ schema: "content", name: "stock" }).old} AS o) AS s ON s.store = c.id`,
      },
    };
    await source.install([stock, store]);
    const query = "SELECT s.store, s.film, t.title FROM content.stock s JOIN content.store t ON t.id = s.store";
    const columns = ["store", "film", "title"].map((name) => ({ name, type: name === "title" ? "text" : "integer" }));
    const stocks = await source.follow({ query, key: ["store", "film"], columns, tables: [stock, store] });
    await source.query(
      "INSERT INTO content.store VALUES (1, 'a'), (2, 'b'); INSERT INTO content.stock VALUES (1, 1), (2, 1)",
    );
    const start = await stocks.start();
    await source.query("UPDATE content.store SET title = 'c' WHERE id = 1; DELETE FROM content.stock WHERE store = 1");
    expect(await stocks.since(start)).toEqual({ kind: "keys", changes: 2, keys: [["1", "1"]] });
    const rows = await stocks.inRound(async (round) => {
      await round.keysSince(start, LIMITS);
      return (
        await (
          await round.open([
            ["1", "1"],
            ["2", "1"],
          ])
        ).read(10)
      ).rows();
    });
    expect(rows).toEqual([["2", "1", "b"]]);
  });
});
