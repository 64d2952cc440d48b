import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openSourceInspector } from "../../src/connectors/postgres/source-inspector.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import { type FollowedQuery, type FollowedSource, keyedTable, openFollowedSource } from "../support/followed-source.ts";
import { type SlotServer, startSlotServer } from "../support/slot-server.ts";
import { until } from "../support/until.ts";

/** A slot keeps what somebody has not read, and no more than it may; and whoever lost changes is told. */

const ID = { name: "id", type: "bigint" };
const FILM = keyedTable("content", "film", ID, ["title"]);
const FILMS = {
  query: "SELECT id, title FROM content.film",
  key: ["id"],
  columns: [ID, { name: "title", type: "text" }],
  tables: [FILM],
};
const PAST =
  "The slot keeping is past changes that were not read yet: it was recreated, moved by somebody, or would have kept more WAL than its limit.";
const MIB = 1024 * 1024;

let server: SlotServer;
let source: FollowedSource;
let films: FollowedQuery;
beforeAll(async () => {
  server = await startSlotServer();
  source = await openFollowedSource({ kind: "slot", name: "keeping", keepBytes: 40 * MIB, serverUrl: server.url });
  await source.query(`CREATE TABLE content.film (id bigint PRIMARY KEY, title text);
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 20) n;
    CREATE TABLE content.other (id bigint, filler text)`);
});
beforeEach(async () => {
  await source.install([FILM]);
  films = await source.follow(FILMS);
});
afterAll(async () => {
  await source?.drop();
  await server?.stop();
});

const watched = (pipelineId: string, position: FollowPosition) => ({ pipelineId, position, tables: ["content.film"] });
const change = (id: number) => source.query(`UPDATE content.film SET title = title || '.' WHERE id = ${id}`);
/** WAL that is about no table. */
const fill = (mib: number) =>
  source.query(
    `SELECT count(pg_logical_emit_message(false, 'filler', repeat('x', ${MIB}))) FROM generate_series(1, ${mib})`,
  );
const placeOf = async (): Promise<string> =>
  String(
    (
      await source.query("SELECT confirmed_flush_lsn AS lsn FROM pg_replication_slots WHERE slot_name = 'keeping'")
    )[0]?.["lsn"],
  );
/** A round that takes what has changed since, as a pipeline does. */
const moveOn = async (from: FollowPosition): Promise<FollowPosition> =>
  films.inRound(async (round) => {
    await round.keysSince(from, { maxChanges: 1000, maxKeys: 1000 });
    return round.position;
  });

describe("the slot", () => {
  it("is waited for where a run has said already that it does not tell of every change", async () => {
    const [watch, position] = [source.watch(), await films.start()];
    const told = { ...watched("told", position), ifRecorded: true };
    await change(1);
    await moveOn(position);
    expect(await watch.changedSince([told])).toEqual(["told"]);
    await source.query("ALTER PUBLICATION keeping DROP TABLE content.film");
    expect(await watch.changedSince([told, watched("untold", position)])).toEqual(["untold"]);
    await source.query("DROP PUBLICATION keeping");
    expect(await watch.changedSince([told, watched("untold", position)])).toEqual(["untold"]);
    await source.install([FILM]);
    expect(await watch.changedSince([told])).toEqual(["told"]);
  });

  it("keeps what one of two pipelines has not seen, whatever the other has", async () => {
    const [watch, slow] = [source.watch(), await films.start()];
    await change(1);
    const quick = await moveOn(slow);
    const before = await placeOf();
    expect(await watch.changedSince([watched("slow", slow), watched("quick", quick)])).toEqual(["slow"]);
    expect(await watch.forgetSeen([watched("slow", slow), watched("quick", quick)])).toEqual([]);
    expect(await films.since(slow)).toMatchObject({ changes: 1, keys: [["1"]] });
    const both = await moveOn(slow);
    await watch.forgetSeen([watched("slow", both), watched("quick", quick)]);
    expect(await placeOf()).not.toBe(before);
    expect(await films.since(slow)).toEqual({ kind: "everything", reason: PAST });
    expect(await films.since(quick)).toEqual({ kind: "keys", changes: 0, keys: [] });
  });

  it("is not moved back, nor further, by a watcher that has old positions", async () => {
    const [watch, stale, old] = [source.watch(), source.watch(), await films.start()];
    await change(2);
    const now = await moveOn(old);
    await change(3);
    await watch.forgetSeen([watched("p", now)]);
    const place = await placeOf();
    expect(await stale.forgetSeen([watched("p", old)])).toEqual([]);
    expect(await placeOf()).toBe(place);
    expect(await films.since(now)).toEqual({ kind: "keys", changes: 1, keys: [["3"]] });
  });

  it("does not wait for a pipeline that is too far behind, and says which", async () => {
    const [watch, paused] = [source.watch(), await films.start()];
    await change(4);
    await fill(30);
    const running = await moveOn(paused);
    expect(await watch.forgetSeen([watched("paused", paused), watched("running", running)])).toEqual([]);
    expect(await films.since(paused)).toMatchObject({ keys: [["4"]] });
    await fill(20);
    await change(5);
    expect(await watch.forgetSeen([watched("paused", paused), watched("running", running)])).toEqual(["paused"]);
    expect(await watch.forgetSeen([watched("paused", paused), watched("running", running)])).toEqual([]);
    expect(await watch.changedSince([watched("paused", paused)])).toEqual(["paused"]);
    expect(await films.since(paused)).toEqual({ kind: "everything", reason: PAST });
    expect(await films.since(running)).toMatchObject({ keys: [["5"]] });
    // Nor for the only one that there is.
    const alone = await films.start();
    await fill(50);
    expect(await watch.forgetSeen([watched("alone", alone)])).toEqual(["alone"]);
    expect(await films.since(alone)).toEqual({ kind: "everything", reason: PAST });
  });

  it("lets a pipeline run that has no changes, once it holds back a lot", async () => {
    const [watch, quiet] = [source.watch(), await moveOn(await films.start())];
    await fill(40);
    expect(await watch.changedSince([watched("p", quiet)])).toEqual([]);
    await fill(40);
    expect(await watch.changedSince([watched("p", quiet)])).toEqual(["p"]);
    expect(await watch.changedSince([watched("p", await moveOn(quiet))])).toEqual([]);
  });

  it("is asked again by the watcher only when something was written", async () => {
    // What the tests before have written holds the slot back until a round has looked at it.
    const [watch, position] = [source.watch(), await moveOn(await films.start())];
    await source.query("SELECT pg_logical_emit_message(true, 'flush', ''); CHECKPOINT");
    expect(await watch.changedSince([watched("p", position)])).toEqual([]);
    // Whoever peeked now would find the slot in use.
    const holder = await source.connect();
    await holder.query("BEGIN; SELECT pg_advisory_xact_lock(7116506, hashtext('keeping'))");
    expect(await watch.changedSince([watched("p", position)])).toEqual([]);
    await holder.query("COMMIT");
    await change(6);
    await until(
      "the change is on the disk",
      async () => (await watch.changedSince([watched("p", position)]))[0] === "p",
    );
  });
});

describe("what the slot keeps", () => {
  const ask = async (position: FollowPosition, timeoutMs: number) => {
    const inspector = openSourceInspector({ ...source.config, allowedSchemas: ["content"], timeoutMs });
    try {
      return await inspector.changesWaiting([watched("p", position)]);
    } finally {
      await inspector.close();
    }
  };

  it("is told together with the changes that wait", async () => {
    const position = await films.start();
    await fill(30);
    await change(6);
    await source.query("CHECKPOINT");
    const { byPipeline, slot, uncounted } = await ask(position, 60_000);
    expect(uncounted).toBeUndefined();
    expect(byPipeline.get("p")).toEqual({ changes: 1, oldestSeconds: expect.any(Number) });
    expect(slot).toEqual({ name: "keeping", keptBytes: expect.any(Number) });
    expect(slot?.keptBytes).toBeGreaterThan(30 * MIB);
  });

  it("is told also where there is no time to count the changes", async () => {
    const position = await films.start();
    const holder = await source.connect();
    await holder.query("BEGIN; SELECT pg_advisory_xact_lock(7116506, hashtext('keeping'))");
    expect(await ask(position, 300)).toEqual({
      byPipeline: new Map(),
      slot: { name: "keeping", keptBytes: expect.any(Number) },
      uncounted: expect.objectContaining({ code: "STATEMENT_TIMEOUT" }),
    });
    await holder.query("COMMIT");
  });
});

describe("a server that went back", () => {
  it.each(["lsn", "slotLsn"])("is known by %s, and its slot is not moved", async (name) => {
    const [watch, start] = [source.watch(), await films.start()];
    // As after a backup that was restored without the server knowing: what the position saw does not exist any more.
    const lost = { ...start, [name]: "FFFF/0" };
    await change(13);
    expect(await films.since(lost)).toEqual({
      kind: "everything",
      reason: "The source went back to an earlier state: it was restored, or a standby took its place.",
    });
    const place = await placeOf();
    if (name === "lsn") {
      expect(await watch.changedSince([watched("p", lost)])).toEqual(["p"]);
      expect(await watch.forgetSeen([watched("p", lost)])).toEqual([]);
    }
    expect(await placeOf()).toBe(place);
  });
});

describe("a slot that lost changes", () => {
  it("because it was dropped and recreated makes everything be compared", async () => {
    const [watch, start] = [source.watch(), await films.start()];
    await source.query("SELECT pg_drop_replication_slot('keeping')");
    await expect(films.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "There is no replication slot keeping.",
    });
    expect(await watch.changedSince([watched("p", start)])).toEqual(["p"]);
    expect(await watch.forgetSeen([watched("p", start)])).toEqual([]);
    await change(7);
    await source.install([FILM]);
    expect(await watch.changedSince([watched("p", start)])).toEqual(["p"]);
    expect(await films.since(start)).toEqual({ kind: "everything", reason: PAST });
  });

  it("because somebody moved it makes everything be compared", async () => {
    const start = await films.start();
    await change(8);
    await source.query("SELECT pg_logical_emit_message(true, 'flush', ''); CHECKPOINT");
    await source.query("SELECT pg_replication_slot_advance('keeping', pg_current_wal_flush_lsn())");
    expect(await films.since(start)).toEqual({ kind: "everything", reason: PAST });
  });

  it("because the server gave it up is refused until the script has recreated it", async () => {
    const start = await films.start();
    await change(9);
    await source.query("ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'");
    await source.query("SELECT pg_reload_conf()");
    await until("the server gives it up", async () => {
      await fill(20);
      await source.query("SELECT pg_switch_wal()");
      await source.query("CHECKPOINT");
      const [slot] = await source.query(
        "SELECT wal_status AS status FROM pg_replication_slots WHERE slot_name = 'keeping'",
      );
      return slot?.["status"] === "lost";
    });
    await source.query("ALTER SYSTEM RESET max_slot_wal_keep_size");
    await source.query("SELECT pg_reload_conf()");
    await expect(films.start()).rejects.toThrow(
      "The replication slot keeping is lost: it was given up by the server (wal_removed).",
    );
    expect(await source.watch().changedSince([watched("p", start)])).toEqual(["p"]);
    await source.install([FILM]);
    expect(await films.since(start)).toEqual({ kind: "everything", reason: PAST });
  });

  it("because its publication was missing compares everything, and goes on from there", async () => {
    const start = await films.start();
    await source.query("DROP PUBLICATION keeping");
    await change(10);
    await source.install([FILM]);
    const reason = "The publication of the slot was altered, or recreated.";
    expect(await films.since(start)).toEqual({ kind: "everything", reason });
    const next = await films.start();
    await change(11);
    expect(await films.since(next)).toMatchObject({ keys: [["11"]] });
    // Made by hand, with the slot as it was: servers before 18 cannot decode what was written in between.
    await source.query("DROP PUBLICATION keeping");
    await change(10);
    await source.query("CREATE PUBLICATION keeping FOR TABLE content.film");
    let position = await films.start();
    await until("it goes on", async () => {
      await change(11);
      const found = await films.since(position);
      if (found.kind === "keys") return found.keys.length === 1;
      expect(found.reason).toMatch(/^The publication of the slot was (missing for a while|altered)/);
      position = await films.start();
      await source.watch().forgetSeen([watched("p", position)]);
      return false;
    });
  });
});

describe("somebody else", () => {
  it("who reads the slot is told apart from us, and the round is tried again", async () => {
    const start = await films.start();
    await change(12);
    const other = new pg.Client({ connectionString: source.url, replication: "database" } as pg.ClientConfig);
    other.on("error", () => undefined);
    await other.connect();
    void other
      .query("START_REPLICATION SLOT keeping LOGICAL 0/0 (proto_version '1', publication_names 'keeping')")
      .catch(() => undefined);
    const reader = await until("it reads", async () => {
      const [slot] = await source.query(
        "SELECT active_pid AS pid FROM pg_replication_slots WHERE slot_name = 'keeping'",
      );
      return slot?.["pid"] ?? undefined;
    });
    await expect(films.since(start)).rejects.toMatchObject({
      code: "DATABASE_BUSY",
      message: `The slot keeping is being read by the server process ${reader}, not by Vitrina.`,
    });
    await other.end();
    await until("it reads no more", async () => {
      const [slot] = await source.query("SELECT active FROM pg_replication_slots WHERE slot_name = 'keeping'");
      return slot?.["active"] === false;
    });
    expect(await films.since(start)).toMatchObject({ keys: [["12"]] });
  });
});

const PROBLEMS: [what: string, change: string, message: string][] = [
  ["no publication", "DROP PUBLICATION keeping", "There is no publication keeping."],
  [
    "deletes that are not published",
    "ALTER PUBLICATION keeping SET (publish = 'insert, update')",
    "The publication keeping does not publish all of insert, update, delete and truncate.",
  ],
  [
    "a table that is not published",
    "ALTER PUBLICATION keeping SET TABLE content.other",
    "content.film is not in the publication keeping.",
  ],
  [
    "some rows of a table",
    "ALTER PUBLICATION keeping SET TABLE content.film WHERE (id > 3)",
    "The publication keeping has only some rows of content.film.",
  ],
  [
    "an unlogged table",
    "ALTER PUBLICATION keeping DROP TABLE content.film; ALTER TABLE content.film SET UNLOGGED",
    "content.film is unlogged: a crash of the server empties it silently.",
  ],
  [
    "a reader without the right",
    "ALTER ROLE vitrina_reader NOREPLICATION",
    "The role vitrina_reader may not read a slot: it lacks REPLICATION.",
  ],
  [
    "rows without an identity",
    "ALTER TABLE content.film REPLICA IDENTITY NOTHING",
    "content.film has no replica identity: its rows cannot be updated or deleted while it is published.",
  ],
];

describe("what is refused", () => {
  it.each(PROBLEMS)("%s", async (_, problem, message) => {
    await films.start();
    await source.query(problem);
    await expect(films.start()).rejects.toThrow(message);
    // The script puts it right.
    await source.query("ALTER TABLE content.film SET LOGGED");
    await source.install([FILM]);
    await films.start();
  });
});
