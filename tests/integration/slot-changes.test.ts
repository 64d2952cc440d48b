import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { slotScript } from "../../src/connectors/postgres/changes/slot/script.ts";
import { openSourceInspector } from "../../src/connectors/postgres/source-inspector.ts";
import {
  type FollowedQuery,
  type FollowedSource,
  followIn,
  keyedTable,
  LIMITS,
  openFollowedSource,
} from "../support/followed-source.ts";
import { createRandomTables, followAtTheSameTime } from "../support/random-marts.ts";
import { runs } from "../support/seed.ts";
import { KEEP, type SlotServer, startSlotServer } from "../support/slot-server.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** What a slot tells is what a round finds: every change once, as soon as it is visible and not before. */

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

let server: SlotServer;
let source: FollowedSource;
beforeAll(async () => {
  server = await startSlotServer();
  source = await openFollowedSource({ kind: "slot", name: "changes", ...KEEP, serverUrl: server.url });
  await source.query(`
    CREATE TABLE content.film (id bigint PRIMARY KEY, title text, seen_at timestamptz);
    CREATE TABLE content.rating (id bigint PRIMARY KEY, film_id bigint NOT NULL, score integer);
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 20) n;
    INSERT INTO content.rating SELECT n, n % 20 + 1, n FROM generate_series(1, 40) n`);
  await source.install([FILM, RATING]);
});
afterAll(async () => {
  await source?.drop();
  await server?.stop();
});

describe("a round", () => {
  let films: FollowedQuery;
  beforeAll(async () => {
    films = await source.follow(FILMS);
  });

  it("finds the keys of rows that were added, changed, moved and deleted, although no commit was waited for", async () => {
    const start = await films.start();
    expect(await films.since(start)).toEqual(NOTHING);
    await source.query("UPDATE content.film SET title = 'other' WHERE id = 3");
    await source.query("INSERT INTO content.film VALUES (21, 'new')");
    await source.query("DELETE FROM content.film WHERE id = 4");
    await source.query("UPDATE content.rating SET film_id = 8 WHERE id = 6");
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 4, keys: keys(21, 3, 4, 7, 8) });
    expect(await films.since(await films.start())).toEqual(NOTHING);
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

  it("compares everything above the limits, and after TRUNCATE", async () => {
    const start = await films.start();
    await source.query("UPDATE content.film SET title = title || '!' WHERE id <= 3");
    expect(await films.since(start, { maxChanges: 3, maxKeys: 3 })).toMatchObject({ kind: "keys", changes: 3 });
    expect(await films.since(start, { maxChanges: 2, maxKeys: 3 })).toEqual({
      kind: "everything",
      reason: "More than 2 rows were changed.",
    });
    await source.query("TRUNCATE content.rating");
    expect(await films.since(start)).toEqual({
      kind: "everything",
      reason: "content.rating was truncated or rewritten.",
    });
  });
});

it("a server that falls silent while it writes to its disk ends the round, and not only its session", async () => {
  const proxy = await startTcpProxy(server.url);
  const config = { ...source.config, url: proxy.through(source.config.url) };
  const films = await followIn(config, FILMS);
  const start = await films.start();
  await source.query("UPDATE content.film SET title = 'silence' WHERE id = 2");
  const silence = proxy.on({ direction: "to server", bytes: "pg_logical_emit_message", nth: 1, after: [] }, "silence");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const found = films.since(start).catch((error: unknown) => error);
    await until("it is to be written", () => silence.acted);
    await vi.advanceTimersByTimeAsync(200_000);
    expect(await found).toMatchObject({ code: "STATEMENT_TIMEOUT" });
  } finally {
    vi.useRealTimers();
    await films.follower.close();
    await proxy.close();
  }
});

describe("a commit that waits for a standby", () => {
  /** Ends when the standby is no longer waited for. */
  const updateUntilStandbyAnswers = async (update: string): Promise<() => Promise<void>> => {
    await source.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await source.query("SELECT pg_reload_conf()");
    const waiting = await source.connect();
    await waiting.query("SET synchronous_commit = on");
    const [{ pid }] = (await waiting.query("SELECT pg_backend_pid() AS pid")).rows;
    const committed = waiting.query(update);
    await until("it waits for the standby", async () => {
      const [row] = await source.query("SELECT wait_event FROM pg_stat_activity WHERE pid = $1", [pid]);
      return row?.["wait_event"] === "SyncRep";
    });
    return async () => {
      await source.query("SELECT pg_cancel_backend($1)", [pid]);
      await committed;
      await source.query("ALTER SYSTEM RESET synchronous_standby_names");
      await source.query("SELECT pg_reload_conf()");
    };
  };

  it("is decoded before it can be seen, and is left for a later round", async () => {
    const films = await source.follow(FILMS);
    const start = await films.start();
    const standbyAnswers = await updateUntilStandbyAnswers("UPDATE content.film SET title = 'waits' WHERE id = 5");
    const [decoded] = await source.query(
      `SELECT count(*)::int AS rows FROM pg_logical_slot_peek_binary_changes('changes', NULL, NULL, 'proto_version', '1', 'publication_names', 'changes')
        WHERE position('waits'::bytea IN data) > 0`,
    );
    const [seen] = await source.query("SELECT count(*)::int AS rows FROM content.film WHERE title = 'waits'");
    expect([decoded, seen]).toEqual([{ rows: 1 }, { rows: 0 }]);

    await source.query("UPDATE content.film SET title = 'quick' WHERE id = 6");
    let between = start;
    await films.inRound(async (round) => {
      expect(await round.keysSince(start, LIMITS)).toMatchObject({ keys: keys(6) });
      between = round.position;
    });
    // The slot may be moved up to the position, and still has it.
    const watch = source.watch();
    const watched = { pipelineId: "p", position: between, tables: ["content.film", "content.rating"] };
    expect(await watch.changedSince([watched])).toEqual([]);
    await watch.forgetSeen([watched]);
    await standbyAnswers();
    expect(await watch.changedSince([watched])).toEqual(["p"]);
    expect(await films.since(between)).toEqual({ kind: "keys", changes: 1, keys: keys(5) });
  });

  it("is not passed over by a whole compare, whose snapshot names no transaction that is running", async () => {
    const films = await source.follow(FILMS);
    const standbyAnswers = await updateUntilStandbyAnswers("UPDATE content.film SET title = 'late' WHERE id = 7");
    const compared = await films.start();
    // Nothing that has a greater number has ended.
    expect(compared.snapshot).toMatch(/:$/);
    const watch = source.watch();
    const watched = { pipelineId: "p", position: compared, tables: ["content.film", "content.rating"] };
    await watch.forgetSeen([watched]);
    await standbyAnswers();
    expect(await watch.changedSince([watched])).toEqual(["p"]);
    expect(await films.since(compared)).toEqual({ kind: "keys", changes: 1, keys: keys(7) });
  });
});

describe("old values", () => {
  /** The mart's key is the parent of a row. */
  const child = (
    name: string,
    query = `SELECT parent AS id, count(*) AS rows FROM content.${name} GROUP BY parent`,
  ) => ({
    query,
    key: ["id"],
    columns: [ID, { name: "rows", type: "bigint" }],
    tables: [keyedTable("content", name, { name: "parent", type: "bigint" })],
  });

  it("of a moved child are not told by the primary key, which is refused with the remedy", async () => {
    await source.query(`CREATE TABLE content.plain (id bigint PRIMARY KEY, parent bigint NOT NULL);
      ALTER PUBLICATION changes ADD TABLE content.plain`);
    const query = await source.follow(child("plain"));
    await expect(query.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: `The replica identity of content.plain lacks parent: when a row gets another parent, the old one is unknown. Run: ALTER TABLE "content"."plain" REPLICA IDENTITY FULL; Or, which is cheaper, if these columns are NOT NULL: CREATE UNIQUE INDEX … ON "content"."plain" ("id", "parent"); ALTER TABLE "content"."plain" REPLICA IDENTITY USING INDEX …;`,
    });
    await source.query("ALTER PUBLICATION changes DROP TABLE content.plain");
  });

  it.each(["an index", "all columns"])("come by %s, which the script chooses", async (kind) => {
    const name = kind === "an index" ? "by_index" : "by_all";
    await source.query(`CREATE TABLE content.${name} (id bigint PRIMARY KEY, parent bigint ${kind === "an index" ? "NOT NULL" : ""}, note text);
      CREATE UNIQUE INDEX ${name}_identity ON content.${name} (id, parent);
      INSERT INTO content.${name} SELECT n, n, 'x' FROM generate_series(1, 9) n`);
    const query = child(name);
    await source.install([FILM, RATING, ...query.tables]);
    const [table] = await source.query(`SELECT relreplident AS identity FROM pg_class WHERE relname = '${name}'`);
    expect(table).toEqual({ identity: kind === "an index" ? "i" : "f" });
    const children = await source.follow(query);
    const start = await children.start();
    await source.query(`UPDATE content.${name} SET note = 'y' WHERE id = 1`);
    expect(await children.since(start)).toMatchObject({ keys: keys(1) });
    await source.query(`UPDATE content.${name} SET parent = 70 WHERE id = 7`);
    await source.query(`DELETE FROM content.${name} WHERE id = 8`);
    expect(await children.since(start)).toMatchObject({ changes: 3, keys: [["1"], ["7"], ["70"], ["8"]] });
    // As when somebody sets the identity back for a moment, so that nothing tells where a row was.
    const next = await children.start();
    const back = kind === "an index" ? `USING INDEX ${name}_identity` : "FULL";
    await source.query(`ALTER TABLE content.${name} REPLICA IDENTITY DEFAULT; UPDATE content.${name} SET parent = 90 WHERE id = 9;
      ALTER TABLE content.${name} REPLICA IDENTITY ${back}`);
    expect(await children.since(next)).toEqual({
      kind: "everything",
      reason: `A change of content.${name} could not be recorded.`,
    });
  });

  it("that are stored apart and were not touched are taken from the old row, and otherwise everything is compared", async () => {
    await source.query(`CREATE TABLE content.wide (id bigint PRIMARY KEY, name text, note text);
      ALTER TABLE content.wide ALTER name SET STORAGE EXTERNAL;
      INSERT INTO content.wide VALUES (1, repeat('w', 9000), 'x')`);
    const table = keyedTable("content", "wide", { name: "name", type: "text" });
    const query = {
      query: "SELECT name FROM content.wide",
      key: ["name"],
      columns: [{ name: "name", type: "text" }],
      tables: [table],
    };
    await source.install([FILM, RATING, table]);
    const wide = await source.follow(query);
    let start = await wide.start();
    await source.query("UPDATE content.wide SET note = 'y'");
    expect(await wide.since(start)).toMatchObject({ keys: [["w".repeat(9000)]] });
    start = await wide.start();
    await source.query("ALTER TABLE content.wide REPLICA IDENTITY DEFAULT; UPDATE content.wide SET note = 'z'");
    await source.query("ALTER TABLE content.wide REPLICA IDENTITY FULL");
    expect(await wide.since(start)).toEqual({
      kind: "everything",
      reason: "A change of content.wide could not be recorded.",
    });
  });

  it("of partitions are told by each of them, also by one with its columns in another order", async () => {
    await source.query(`CREATE TABLE content.parts (id bigint, region text, parent bigint) PARTITION BY LIST (region);
      CREATE TABLE content.parts_a PARTITION OF content.parts FOR VALUES IN ('a');
      CREATE TABLE content.parts_b (gone int, parent bigint, region text, id bigint); ALTER TABLE content.parts_b DROP gone;
      ALTER TABLE content.parts ATTACH PARTITION content.parts_b FOR VALUES IN ('b');
      CREATE TABLE content.family (id bigint, parent bigint); CREATE TABLE content.family_b (more int) INHERITS (content.family)`);
    for (const [name, parts] of [
      ["parts", ["parts_a", "parts_b"]],
      ["family", ["family", "family_b"]],
    ] as const) {
      const query = child(name);
      await source.install([FILM, RATING, ...query.tables]);
      const family = await source.follow(query);
      const start = await family.start();
      for (const [n, part] of parts.entries()) {
        const columns = name === "parts" ? "(id, parent, region)" : "(id, parent)";
        await source.query(
          `INSERT INTO content.${part} ${columns} VALUES (${n}, ${n}${name === "parts" ? `, '${"ab"[n]}'` : ""})`,
        );
      }
      await source.query(`UPDATE content.${name} SET parent = parent + 10`);
      expect(await family.since(start)).toMatchObject({ changes: 4, keys: [["0"], ["1"], ["10"], ["11"]] });
      const next = await family.start();
      await source.query(`TRUNCATE content.${parts[1]}`);
      expect(await family.since(next)).toMatchObject({ kind: "everything" });
    }
    await source.query("ALTER PUBLICATION changes ADD TABLE content.parts_a, content.parts_b");
    const parts = await source.follow(child("parts"));
    await parts.start();
    await source.query("ALTER PUBLICATION changes SET (publish_via_partition_root = true)");
    await expect(parts.start()).rejects.toThrow("publish_via_partition_root = false");
    await source.install([FILM, RATING]);
  });
});

describe("the next partition of a table without a primary key", () => {
  it("stops the mart until the script has run again, and never the application", async () => {
    await source.query(`CREATE TABLE content.sale (id bigint, day date, title text) PARTITION BY RANGE (day);
      CREATE TABLE content.sale_1 PARTITION OF content.sale FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`);
    const table = keyedTable("content", "sale", ID, ["title"]);
    const tables = [FILM, RATING, table];
    await source.install(tables);
    const query = "SELECT id, title FROM content.sale";
    const sales = await source.follow({
      query,
      key: ["id"],
      columns: [ID, { name: "title", type: "text" }],
      tables: [table],
    });
    let start = await sales.start();
    await source.query("INSERT INTO content.sale VALUES (1, '2026-01-05', 'a')");
    await source.query(
      "CREATE TABLE content.sale_2 PARTITION OF content.sale FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
    );
    await source.query("INSERT INTO content.sale VALUES (2, '2026-02-05', 'b'), (3, '2026-02-06', 'c')");
    await source.query("UPDATE content.sale SET title = title || '!'");
    await source.query("DELETE FROM content.sale WHERE id = 3");
    await expect(sales.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: expect.stringMatching(/^content.sale_2 is not in the publication changes/),
    });
    await source.install(tables);
    expect(await sales.since(start)).toMatchObject({ kind: "everything" });
    start = await sales.start();
    await source.query("UPDATE content.sale SET title = 'x'");
    expect(await sales.since(start)).toEqual({ kind: "keys", changes: 2, keys: keys(1, 2) });
    await source.install(tables);
    expect(await sales.since(start)).toEqual({ kind: "keys", changes: 2, keys: keys(1, 2) });
    // Nothing is to be done about the parts, nor about the whole, which nobody published.
    const inspector = openSourceInspector({ ...source.config, allowedSchemas: ["content"], timeoutMs: 60_000 });
    expect(await inspector.changesScript({ purpose: "diff", tables, isComplete: true })).toBe(
      "-- The source records everything that its pipelines need.\n",
    );
    await inspector.close();

    await source.query("ALTER PUBLICATION changes SET TABLE content.film, content.rating, content.sale");
    await expect(sales.start()).rejects.toThrow(
      /^The publication changes has all of content.sale, which has no primary key/,
    );
    await source.install(tables);
    await sales.start();
    // Without a partition there is nothing to publish yet.
    await source.query("DROP TABLE content.sale_1, content.sale_2");
    await source.install([table]);
    await sales.start();
    await source.query("DROP PUBLICATION changes");
    await source.install([table]);
    await sales.start();
    await source.install([FILM, RATING]);
  });
});

describe("a partition that is taken out for a while", () => {
  it("is written without anybody being told, so everything is compared", async () => {
    await source.query(`CREATE TABLE content.split (id bigint PRIMARY KEY, title text) PARTITION BY LIST (id);
      CREATE TABLE content.split_1 PARTITION OF content.split FOR VALUES IN (1); INSERT INTO content.split VALUES (1, 'old')`);
    const table = keyedTable("content", "split", ID, ["title"]);
    await source.install([FILM, RATING, table]);
    const split = await source.follow({
      query: "SELECT id, title FROM content.split",
      key: ["id"],
      columns: [ID, { name: "title", type: "text" }],
      tables: [table],
    });
    const start = await split.start();
    await source.query("ALTER TABLE content.split DETACH PARTITION content.split_1");
    await source.query("UPDATE content.split_1 SET title = 'new'");
    await source.query("ALTER TABLE content.split ATTACH PARTITION content.split_1 FOR VALUES IN (1)");
    expect(await split.since(start)).toEqual({
      kind: "everything",
      reason: "A partition of content.split was attached or removed.",
    });
  });
});

describe("a table that is published later", () => {
  it("waits for whoever is writing it, because the slot would never tell what they wrote before", async () => {
    await source.query("CREATE TABLE content.late (id bigint PRIMARY KEY, title text)");
    const late = keyedTable("content", "late", ID, ["title"]);
    const writer = await source.connect();
    await writer.query("BEGIN; INSERT INTO content.late VALUES (1, 'early')");
    const owner = await source.connect();
    const script = slotScript({ name: "changes", tables: [FILM, RATING, late], reader: "vitrina_reader" });
    await expect(owner.query(script)).rejects.toThrow("lock timeout");
    await owner.query("ROLLBACK");
    await writer.query("COMMIT");
    await source.install([FILM, RATING, late]);
    await source.install([FILM, RATING]);
  });
});

describe("marts that follow a slot", () => {
  it("are what their query gives, while everything happens at the same time", async () => {
    const random = await openFollowedSource({ kind: "slot", name: "random", ...KEEP, serverUrl: server.url });
    try {
      await createRandomTables(random);
      expect(await followAtTheSameTime(random, runs(60, 1000))).toBeGreaterThan(0);
    } finally {
      await random.drop();
    }
  });
});
