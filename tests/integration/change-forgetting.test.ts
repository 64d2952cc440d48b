import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FollowedQuery, type FollowedSource, keyedTable, openFollowedSource } from "../support/followed-source.ts";
import { until } from "../support/until.ts";

/** The change table cannot fill the disk, and whoever has not read what it forgot is told so. */

const ID = { name: "id", type: "bigint" };
const FILM = keyedTable("content", "film", ID, ["title"]);
const GENRE = keyedTable("content", "genre", ID, ["title"]);
const NOTHING = { kind: "keys", changes: 0, keys: [] };
const FORGOTTEN = {
  kind: "everything",
  reason: "The change table has forgotten changes of content.film that were not read yet: its limit was reached.",
};
const FULL = { kind: "everything", reason: "The change table was full, or somebody emptied it: changes are missing." };

let source: FollowedSource;
let films: FollowedQuery;
let genres: FollowedQuery;
beforeEach(async () => {
  source = await openFollowedSource();
  await source.query(`CREATE TABLE content.film (id bigint PRIMARY KEY, title text);
    CREATE TABLE content.genre (id bigint PRIMARY KEY, title text);
    INSERT INTO content.film SELECT n, 'film' FROM generate_series(1, 1000) n;
    INSERT INTO content.genre VALUES (1, 'Drama')`);
  await source.install([FILM, GENRE], { maxRows: 400, maxAgeHours: 1 });
  const query = (table: typeof FILM) => ({
    query: `SELECT id, title FROM content.${table.name}`,
    key: ["id"],
    columns: [ID, { name: "title", type: "text" }],
    tables: [table],
  });
  films = await source.follow(query(FILM));
  genres = await source.follow(query(GENRE));
});
afterEach(() => source.drop());

const change = (count: number): Promise<unknown> =>
  source.query("UPDATE content.film SET title = title || 'x' WHERE id <= $1", [count]);

/** As Vitrina calls it. */
async function forget(...seen: (readonly [string, { readonly snapshot: string }])[]): Promise<unknown> {
  const list = seen.map(([relation, { snapshot }]) => ({ relation: `content.${relation}`, snapshot }));
  const [row] = await source.query("SELECT vitrina.forget($1) AS answer", [JSON.stringify(list)]);
  return row?.["answer"];
}
const stored = async (): Promise<number> =>
  Number((await source.query("SELECT count(*) FROM vitrina.changes"))[0]?.["count"]);

describe("what every position has seen", () => {
  it("is forgotten, part by part, and nobody compares everything for it", async () => {
    const start = await films.start();
    await change(150);
    expect(await forget(["film", start])).toBe("took turns");
    await change(10);
    expect(await forget(["film", start])).toBe("kept for a reader");
    const next = await films.start();
    expect(await forget(["film", start], ["film", next])).toBe("kept for a reader");
    expect(await forget(["film", next])).toBe("forgot");
    expect(await stored()).toBe(10);
    expect(await films.since(next)).toEqual(NOTHING);
    await change(1);
    expect(await films.since(next)).toEqual({ kind: "keys", changes: 1, keys: [["1"]] });
    expect(await films.since(start)).toEqual(FORGOTTEN);
    // The part that is left has changes that are before the newest position, and behind an older one.
    expect(await forget(["film", await films.start()])).toBe("nothing to forget");
  });

  it("does not depend on positions of other tables, which may be old because nothing changed there", async () => {
    const quiet = await genres.start();
    await change(150);
    const next = await films.start();
    await forget(["genre", quiet], ["film", next]);
    expect(await forget(["genre", quiet], ["film", next])).toBe("forgot");
    expect(await stored()).toBe(0);
    expect(await genres.since(quiet)).toEqual(NOTHING);
    expect(await films.since(next)).toEqual(NOTHING);
  });

  it("is not known of a table whose readers are not named, which then keeps what it has", async () => {
    const start = await films.start();
    await change(150);
    expect(await forget()).toBe("took turns");
    expect(await forget(["genre", await genres.start()])).toBe("kept for a reader");
    expect(await films.since(start)).toMatchObject({ kind: "keys", changes: 150 });
  });

  it("is told through the watcher, which takes turns and forgets", async () => {
    await change(150);
    const position = await films.start();
    const watch = source.watch();
    const seen = [{ pipelineId: "p", position, tables: ["content.film"] }];
    await watch.forgetSeen(seen);
    await watch.forgetSeen(seen);
    expect(await stored()).toBe(0);
    expect(await watch.changedSince(seen)).toEqual([]);
    expect(await films.since(position)).toEqual(NOTHING);
  });

  it("includes the newest change that was seen", async () => {
    await change(150);
    const position = await films.start();
    expect(position.lastChange).not.toBeNull();
    await forget(["film", position]);
    await forget(["film", position]);
    expect(await stored()).toBe(0);
    expect(await films.since(position)).toEqual(NOTHING);
    expect((await films.start()).lastChange).toBeNull();
  });
});

describe("at the limit", () => {
  it("the older part goes, and only who has not read it compares everything", async () => {
    const late = await films.start();
    await change(150);
    expect(await forget(["film", late])).toBe("took turns");
    const early = await films.start();
    await change(100);
    expect(await forget(["film", late], ["film", early])).toBe("forgot at the limit");
    expect(await films.since(late)).toEqual(FORGOTTEN);
    expect(await films.since(early)).toMatchObject({ kind: "keys", changes: 100 });
    const watched = [late, early].map((position, n) => ({ pipelineId: `p${n}`, position, tables: ["content.film"] }));
    expect(await source.watch().changedSince(watched.slice(0, 1))).toEqual(["p0"]);
  });

  it("what is older than the age that was set goes, however little it is", async () => {
    const late = await films.start();
    await change(3);
    expect(await forget(["film", late])).toBe("nothing to forget");
    await source.query("UPDATE vitrina.state SET opened_at = opened_at - interval '31 minutes'");
    expect(await forget(["film", late])).toBe("took turns");
    expect(await forget(["film", late])).toBe("kept for a reader");
    await source.query("UPDATE vitrina.state SET opened_at = opened_at - interval '61 minutes'");
    expect(await forget(["film", late])).toBe("forgot at the limit");
    expect(await films.since(late)).toEqual(FORGOTTEN);
  });

  it("nothing more is stored when nobody comes, writes go on, and all compare everything once", async () => {
    const start = await films.start();
    await change(1000);
    expect(await stored()).toBe(400);
    expect(await films.since(start)).toEqual(FULL);
    // A position from after it is no better, as long as changes may be left out.
    const meanwhile = await films.start();
    await source.query("UPDATE content.film SET title = 'left out' WHERE id = 7");
    expect(await films.since(meanwhile)).toEqual(FULL);
    expect(
      await source.watch().changedSince([{ pipelineId: "p", position: meanwhile, tables: ["content.film"] }]),
    ).toEqual(["p"]);
    expect(await forget(["film", meanwhile])).toBe("started over");
    expect(await stored()).toBe(0);
    expect(await films.since(meanwhile)).toEqual(FORGOTTEN);
    const next = await films.start();
    await change(2);
    expect(await films.since(next)).toEqual({ kind: "keys", changes: 2, keys: [["1"], ["2"]] });
  });

  it("that was reached is still known to have been when the owner raises it", async () => {
    const start = await films.start();
    await change(1000);
    await source.install([FILM, GENRE], { maxRows: 4000, maxAgeHours: 1 });
    expect(await films.since(start)).toEqual(FULL);
    expect(await forget(["film", start])).toBe("started over");
    expect(await films.since(start)).toEqual(FORGOTTEN);
    const next = await films.start();
    await change(1000);
    expect(await films.since(next)).toMatchObject({ kind: "keys", changes: 1000 });
  });

  it("a change that is left out just before a part is emptied is not forgotten with it", async () => {
    const [writer, blocker] = [await source.connect(), await source.connect()];
    const left = (count: number) =>
      writer.query("UPDATE content.film SET title = title || 'x' WHERE id <= $1", [count]);
    await left(150);
    const start = await films.start();
    expect(await forget(["film", start])).toBe("took turns");
    await left(249);
    const next = await films.start();
    // It has looked at the numbers, and waits before it locks the part.
    await source.query("ALTER FUNCTION vitrina.forget(jsonb) SET lock_timeout = '30s'");
    await blocker.query("BEGIN; LOCK TABLE ONLY vitrina.changes IN ACCESS EXCLUSIVE MODE");
    const forgetting = forget(["film", next]);
    await until("it waits", async () => {
      const waiting = await source.query(
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'vitrina.changes'::regclass",
      );
      return waiting.length > 0;
    });
    await left(2);
    await blocker.query("COMMIT");
    expect(await forgetting).toBe("busy");
    expect(await films.since(next)).toEqual(FULL);
  });

  it("long values reach the limit sooner, so that they do not fill the disk either", async () => {
    const titles = keyedTable("content", "film", { name: "title", type: "text" });
    await source.install([titles], { maxRows: 400, maxAgeHours: 1 });
    const long = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 3000) n)";
    for (let round = 1; round <= 10; round += 1) {
      await source.query(`UPDATE content.film SET title = ${long} || $1 WHERE id = 1`, [String(round)]);
    }
    // Of about 190 kB each, but for the first, which has one long value only.
    expect(await stored()).toBe(2);
    const [{ version } = {}] = await source.query("SELECT version FROM vitrina.status WHERE is_full");
    expect(version).toBeDefined();
  });

  it("what somebody else empties is missed, also where no change was seen before", async () => {
    const start = await films.start();
    expect(start.lastChange).toBeNull();
    await change(2);
    await source.query("TRUNCATE vitrina.changes");
    expect(await stored()).toBe(0);
    expect(await films.since(start)).toEqual(FULL);
    const watch = source.watch();
    expect(await watch.changedSince([{ pipelineId: "p", position: start, tables: ["content.film"] }])).toEqual(["p"]);
    expect(await forget(["film", start])).toBe("started over");
    expect(await films.since(start)).toEqual(FORGOTTEN);
    const next = await films.start();
    await change(1);
    expect(await films.since(next)).toEqual({ kind: "keys", changes: 1, keys: [["1"]] });
  });

  it("what somebody else empties together with what tells of it is missed, too", async () => {
    const start = await films.start();
    await source.query("TRUNCATE vitrina.changes, vitrina.state");
    const watched = { pipelineId: "p", position: start, tables: ["content.film"] };
    expect(await source.watch().changedSince([watched])).toEqual(["p"]);
  });

  it("a change that was left out is not forgotten while its transaction lasts", async () => {
    await change(1000);
    const slow = await source.connect();
    await slow.query("BEGIN");
    await slow.query("UPDATE content.film SET title = 'left out' WHERE id = 7");
    expect(await forget()).toBe("busy");
    const before = await films.start();
    await slow.query("COMMIT");
    expect(await films.since(before)).toEqual(FULL);
    expect(await forget()).toBe("started over");
    expect(await films.since(before)).toEqual(FORGOTTEN);
  });
});

describe("while others are at work", () => {
  it("no part is emptied under a round, which would then find nothing", async () => {
    const start = await films.start();
    await change(150);
    await forget(["film", start]);
    const next = await films.start();
    await films.inRound(async (round) => {
      expect(await forget(["film", next])).toBe("busy");
      expect(await round.keysSince(start, { maxChanges: 1000, maxKeys: 1000 })).toMatchObject({ changes: 150 });
    });
    expect(await forget(["film", next])).toBe("forgot");
  });

  it("a transaction that wrote into the resting part, and commits late, is not forgotten unread", async () => {
    const slow = await source.connect();
    await slow.query("BEGIN");
    await slow.query("UPDATE content.film SET title = 'late' WHERE id = 900");
    await change(150);
    const next = await films.start();
    expect(await forget(["film", next])).toBe("took turns");
    expect(await forget(["film", next])).toBe("busy");
    await slow.query("COMMIT");
    expect(await forget(["film", next])).toBe("kept for a reader");
    expect(await films.since(next)).toEqual({ kind: "keys", changes: 1, keys: [["900"]] });
    expect(await forget(["film", await films.start()])).toBe("forgot");
  });

  it("an application that reads repeatably, and has an old view of everything, is recorded", async () => {
    const old = await source.connect();
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.query("SELECT count(*) FROM content.genre");
    await change(400);
    await change(400);
    expect(await forget()).toBe("started over");
    const start = await films.start();
    await old.query("INSERT INTO content.film VALUES (2000, 'new')");
    await old.query("COMMIT");
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 1, keys: [["2000"]] });
  });
});
