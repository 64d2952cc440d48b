import type pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changesDiff, installChanges, recordChanges } from "../../src/connectors/postgres/changes/install.ts";
import { type RecordedTable, recorderName, rowTriggerName } from "../../src/connectors/postgres/changes/recorder.ts";
import { changesScript, detachingScript, removalScript } from "../../src/connectors/postgres/changes/script.ts";
import { FILM, FILMS, type FollowedSource, ID, keyedTable, openFollowedSource } from "../support/followed-source.ts";
import { until } from "../support/until.ts";

/** What the owner of a source runs: it can be run again, extended and removed, and gives nobody more than they need. */

let source: FollowedSource;
beforeEach(async () => {
  source = await openFollowedSource();
  await source.query("CREATE TABLE content.film (id bigint PRIMARY KEY, title text, year integer)");
});
afterEach(() => source.drop());

/** Everything about triggers that a round compares. */
const triggers = (): Promise<Record<string, unknown>[]> =>
  source.query(
    "SELECT oid, xmin::text, tgrelid, tgname, tgenabled FROM pg_trigger WHERE tgname ~ '^vitrina_' ORDER BY oid",
  );
const ofTable = async (name: string): Promise<Record<string, unknown>[]> => {
  const [table] = await source.query("SELECT to_regclass($1)::oid AS oid", [`content.${name}`]);
  return (await triggers()).filter(({ tgrelid }) => tgrelid === table?.["oid"]);
};
const recorded = (): Promise<Record<string, unknown>[]> =>
  source.query("SELECT relation, kind, old, new FROM vitrina.changes ORDER BY number");

/** Of a session: the locks on tables and views that readers or writers of rows would wait for. */
const LOCKS_THAT_WAIT = `
  SELECT l.relation::regclass::text AS relation, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
   WHERE l.pid = $1 AND c.relkind IN ('r', 'p', 'v')
     AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;
const backendOf = async (client: pg.Client): Promise<unknown> =>
  (await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;

describe("the script", () => {
  it("changes nothing when it is run again", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    const before = await triggers();
    await source.install([FILM]);
    await source.install([{ ...FILM, readColumns: [...FILM.readColumns].reverse() }]);
    expect(await triggers()).toEqual(before);
    await source.query("INSERT INTO content.film VALUES (1, 'a')");
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 1, keys: [["1"]] });
  });

  it("changes nothing when it is run again for a table with a long name", async () => {
    const name = "n".repeat(63);
    const long = keyedTable("content", name, ID);
    await source.query(`CREATE TABLE content.${name} (id bigint PRIMARY KEY)`);
    await source.install([long]);
    const before = await triggers();
    expect(before).toHaveLength(2);
    await source.install([long]);
    expect(await triggers()).toEqual(before);
  });

  it("records two tables apart whose names differ only by where the schema ends", async () => {
    await source.query(`CREATE TABLE content."b.t" (id bigint PRIMARY KEY, title text); CREATE SCHEMA "content.b";
      CREATE TABLE "content.b".t (code text PRIMARY KEY); GRANT USAGE ON SCHEMA "content.b" TO vitrina_reader;
      GRANT SELECT ON "content.b".t TO vitrina_reader`);
    const tables = [
      keyedTable("content", "b.t", ID, ["title"]),
      keyedTable("content.b", "t", { name: "code", type: "text" }),
    ];
    await source.install(tables);
    expect(await triggers()).toHaveLength(4);
    const columns = [ID, { name: "code", type: "text" }];
    const query = `SELECT a.id, b.code FROM content."b.t" a, "content.b".t b WHERE b.code = a.title`;
    const titles = await source.follow({ query, key: ["id"], columns, tables: [keyedTable("content", "b.t", ID, [])] });
    const start = await titles.start();
    await source.query(`INSERT INTO "content.b".t VALUES ('x')`);
    expect(await titles.since(start)).toEqual({ kind: "keys", changes: 0, keys: [] });
    await source.query(`INSERT INTO content."b.t" VALUES (7, 'x')`);
    expect(await titles.since(start)).toEqual({ kind: "keys", changes: 1, keys: [["7"]] });
    expect((await recorded()).map(({ relation }) => relation)).toEqual(['"content.b"."t"', '"content"."b.t"']);
  });

  it("waits for nobody when there is nothing to change, and holds nobody up", async () => {
    await source.install([FILM]);
    const [reader, writer] = await Promise.all([source.connect(source.urls.reader), source.connect()]);
    await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM vitrina.status, vitrina.changes");
    await writer.query("BEGIN; INSERT INTO content.film VALUES (1, 'a')");
    // What it still holds before it commits could make two sessions wait for each other.
    const script = changesScript({ tables: [FILM], reader: "vitrina_reader" });
    const held: unknown[] = [];
    const owner = await source.connect();
    for (const transaction of script.split(/^(?=COMMIT;)/m)) {
      await owner.query(transaction);
      held.push(...(await source.query(LOCKS_THAT_WAIT, [await backendOf(owner)])));
    }
    expect(held).toEqual([]);
    await Promise.all([reader.query("COMMIT"), writer.query("COMMIT")]);
    expect(await recorded()).toHaveLength(1);
  });

  it("adds a column without a gap for those who do not need it", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    await source.query("INSERT INTO content.film VALUES (1, 'a', 2020)");
    const before = await triggers();
    const wider: RecordedTable = { ...FILM, imageColumns: [ID, { name: "year", type: "integer" }] };
    await source.install([wider]);
    expect(await triggers()).toEqual(before);
    await source.query("UPDATE content.film SET year = 2021");
    expect(await recorded()).toEqual([
      { relation: "content.film", kind: "r", old: null, new: { id: "1" } },
      { relation: "content.film", kind: "r", old: { id: "1", year: "2020" }, new: { id: "1", year: "2021" } },
    ]);
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 2, keys: [["1"]] });
  });

  it("adds a column only when whoever has changed it before has ended, because that is not recorded", async () => {
    await source.query("INSERT INTO content.film VALUES (1, 'a', 2020)");
    await source.install([FILM]);
    const writer = await source.connect();
    await writer.query("BEGIN; UPDATE content.film SET year = 2021");
    const wider: RecordedTable = { ...FILM, readColumns: [...FILM.readColumns, "year"] };
    const installing = source.install([wider]).then(() => "installed");
    const waiting = until("the script waits for the writer", async () => {
      const locks = await source.query(
        "SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
      );
      return locks.length > 0 && "waiting";
    });
    expect(await Promise.race([installing, waiting])).toBe("waiting");
    await writer.query("COMMIT");
    await installing;
    await source.query("UPDATE content.film SET year = 2022");
    expect(await recorded()).toEqual([{ relation: "content.film", kind: "r", old: null, new: { id: "1" } }]);
  });

  it("recreates the trigger when columns are no longer recorded, so that nobody trusts what is in between", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    await source.install([{ ...FILM, readColumns: ["id"] }]);
    await expect(films.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "Changes of content.film are recorded without title.",
    });
    await source.query("UPDATE content.film SET title = 'unseen'");
    await source.install([FILM]);
    expect(await films.since(start)).toEqual({
      kind: "everything",
      reason: "The trigger on content.film was switched off or on, or recreated.",
    });
  });

  it("says that a recorded column is gone, also to those who do not need it, and writes go on meanwhile", async () => {
    await source.install([{ ...FILM, imageColumns: [ID, { name: "year", type: "integer" }] }]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    await source.query("ALTER TABLE content.film DROP year");
    await expect(films.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "Changes of content.film are recorded with year, which it no longer has.",
    });
    await source.query("INSERT INTO content.film VALUES (1, 'a')");
    expect(await recorded()).toMatchObject([{ kind: "l" }]);
    await source.install([FILM]);
    expect(await films.since(start)).toMatchObject({ kind: "everything" });
  });

  it("puts right what somebody changed, and says so before", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const trigger = rowTriggerName(FILM);
    const OFF = "The trigger of content.film is switched off, or not switched on for replicated changes.";
    const breakings = [
      [`ALTER TABLE content.film DISABLE TRIGGER ${trigger}`, OFF],
      [`ALTER TABLE content.film ENABLE TRIGGER ${trigger}`, OFF],
      [`DROP TRIGGER ${trigger} ON content.film`, "content.film has no trigger that records its changes."],
      [
        `DROP TRIGGER ${trigger} ON content.film; CREATE TRIGGER ${trigger} AFTER INSERT ON content.film FOR EACH ROW
           EXECUTE FUNCTION vitrina.${recorderName(FILM)}()`,
        "The trigger of content.film is not the one that records changes.",
      ],
      [
        `CREATE OR REPLACE FUNCTION vitrina.${recorderName(FILM)}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
           'BEGIN RETURN NULL; END'`,
        "The function that records changes of content.film is not the one that was installed.",
      ],
    ] as const;
    for (const [breaking, message] of breakings) {
      const start = await films.start();
      await source.query(breaking);
      await expect(films.start()).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED", message });
      await source.install([FILM]);
      expect(await films.since(start)).toMatchObject({ kind: "everything" });
    }
  });

  it("of another release is to be run again, and then nothing was missed", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    await source.query("UPDATE vitrina.state SET version = 0");
    await expect(films.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "The change table was installed by another release of Vitrina.",
    });
    await source.install([FILM]);
    expect(await films.since(start)).toMatchObject({ kind: "keys" });
  });

  it("can be run by Vitrina in a source of its own, for one pipeline after the other, also at once", async () => {
    const [first, second] = [await source.connect(), await source.connect()];
    const year = { name: "year", type: "integer" };
    const wider: RecordedTable = { schema: "content", name: "film", imageColumns: [year], readColumns: [] };
    await Promise.all([
      recordChanges(first, [FILM], "vitrina_reader"),
      recordChanges(second, [wider], "vitrina_reader"),
    ]);
    await source.query("INSERT INTO content.film VALUES (1, 'a', 2020)");
    await source.query("UPDATE content.film SET title = 'b'");
    expect(await recorded()).toEqual([
      { relation: "content.film", kind: "r", old: null, new: { id: "1", year: "2020" } },
      { relation: "content.film", kind: "r", old: null, new: { id: "1", year: "2020" } },
    ]);
    await source.query("ALTER TABLE content.film DROP year");
    await recordChanges(first, [FILM], "vitrina_reader");
    await source.query("UPDATE content.film SET title = 'c'");
    expect((await recorded()).at(-1)).toMatchObject({ kind: "r", new: { id: "1" } });
  });

  it("can be removed, twice, and then writes go on without it", async () => {
    await source.query(`CREATE TABLE content.part (id bigint) PARTITION BY LIST (id);
      CREATE TABLE content.part_1 PARTITION OF content.part FOR VALUES IN (1)`);
    await source.install([FILM, keyedTable("content", "part", ID)]);
    await source.query(removalScript());
    await source.query(removalScript());
    expect(await triggers()).toEqual([]);
    expect(await source.query("SELECT FROM pg_namespace WHERE nspname = 'vitrina'")).toEqual([]);
    await source.query("INSERT INTO content.film VALUES (1, 'a'); INSERT INTO content.part VALUES (1)");
  });

  it("can be taken from a single table, twice, wherever its triggers are by now, and the others are followed on", async () => {
    await source.query(`CREATE TABLE content.part (id bigint) PARTITION BY LIST (id);
      CREATE TABLE content.part_1 PARTITION OF content.part FOR VALUES IN (1);
      CREATE TABLE content.part_2 PARTITION OF content.part FOR VALUES IN (2);
      CREATE TABLE content."odd.Na""me" (id bigint)`);
    const [part, odd] = [keyedTable("content", "part", ID), keyedTable("content", 'odd.Na"me', ID)];
    await source.install([FILM, part, odd]);
    await source.query(
      "ALTER TABLE content.part DETACH PARTITION content.part_2; ALTER TABLE content.part RENAME TO parts",
    );
    const films = await source.follow(FILMS);
    const [start, before] = [await films.start(), await ofTable("film")];
    const session = await source.connect();
    const { surplus } = await changesDiff(session, [FILM]);
    const relations = surplus.map(({ relation }) => relation);
    expect(relations.sort()).toEqual(['"content"."odd.Na""me"', "content.part"]);
    expect(await triggers()).toHaveLength(9);
    await session.query("INSERT INTO content.parts VALUES (1)");
    for (let time = 1; time <= 2; time += 1) {
      await installChanges(session, detachingScript(relations));
      expect(await triggers()).toEqual(before);
      expect(await source.query("SELECT relation FROM vitrina.tables")).toEqual([{ relation: "content.film" }]);
    }
    const left =
      "SELECT proname FROM pg_proc WHERE pronamespace = 'vitrina'::regnamespace AND proname LIKE 'record\\_%'";
    expect((await source.query(`${left} ORDER BY 1`)).map(({ proname }) => proname)).toEqual(
      [recorderName(FILM), "record_truncate"].sort(),
    );
    expect(await changesDiff(session, [FILM])).toMatchObject({
      isInstalled: true,
      problems: [],
      hindrances: [],
      surplus: [],
    });
    await session.query(`INSERT INTO content.parts VALUES (1); INSERT INTO content."odd.Na""me" VALUES (1);
      TRUNCATE content.part_2; INSERT INTO content.film VALUES (1, 'a')`);
    expect((await recorded()).map(({ relation }) => relation)).toEqual(["content.part", "content.film"]);
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 1, keys: [["1"]] });
  });

  it("makes whoever follows a table again that was taken out compare everything", async () => {
    await source.install([FILM]);
    const films = await source.follow(FILMS);
    const start = await films.start();
    await source.query(detachingScript(["content.film"]));
    await expect(films.start()).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED" });
    await source.query("INSERT INTO content.film VALUES (1, 'unseen')");
    await source.install([FILM]);
    expect(await films.since(start)).toMatchObject({ kind: "everything" });
  });

  it("of a single table touches nothing where all of it is gone, or is somebody else's", async () => {
    await source.query(detachingScript(["content.film"]));
    expect(await source.query("SELECT FROM pg_namespace WHERE nspname = 'vitrina'")).toEqual([]);
    await source.query("CREATE SCHEMA vitrina; CREATE TABLE vitrina.tables (relation text, recorder name)");
    await source.query("INSERT INTO vitrina.tables VALUES ('content.film', 'x')");
    await expect(source.query(detachingScript(["content.film"]))).rejects.toThrow("belongs to somebody else");
    expect(await source.query("SELECT FROM vitrina.tables")).toHaveLength(1);
  });

  it("leaves a schema of that name alone that is somebody else's", async () => {
    await source.query("CREATE SCHEMA vitrina; CREATE TABLE vitrina.own (id bigint)");
    await expect(source.install([FILM])).rejects.toThrow("The schema vitrina belongs to somebody else");
    await expect(source.query(removalScript())).rejects.toThrow("The schema vitrina belongs to somebody else");
    expect(await source.query("SELECT FROM vitrina.own")).toEqual([]);
  });

  it("can be run by an owner who is no superuser", async () => {
    const owner = await ownerOf(source);
    await installChanges(owner, changesScript({ tables: [FILM], reader: "vitrina_reader" }));
    await installChanges(owner, changesScript({ tables: [FILM], reader: "vitrina_reader" }));
    await owner.query("INSERT INTO content.film VALUES (1, 'a')");
    expect(await recorded()).toHaveLength(1);
    await installChanges(owner, detachingScript(["content.film"]));
    expect(await triggers()).toEqual([]);
    const missing = keyedTable("content", "nothing", ID);
    const script = changesScript({ tables: [missing, FILM], reader: "vitrina_reader" });
    await expect(installChanges(owner, script)).rejects.toThrow("There is no table content.nothing.");
    await owner.query("SELECT 1");
  });

  it("tells an owner who may not act for the role what an administrator has to run", async () => {
    const owner = await ownerOf(source);
    const { rows } = await owner.query("SELECT current_user AS name");
    const name = String(rows[0]?.["name"]);
    await source.query(`ALTER ROLE ${name} NOCREATEROLE; REVOKE vitrina_changes FROM ${name}`);
    const script = changesScript({ tables: [FILM], reader: "vitrina_reader" });
    const hint = `Have an administrator run: GRANT vitrina_changes TO ${name};`;
    await expect(installChanges(owner, script)).rejects.toMatchObject({ hint });
    await source.query(hint.replace("Have an administrator run: ", ""));
    await installChanges(owner, script);
  });

  /** May make roles, and owns the tables. */
  async function ownerOf({ url, query, connect }: FollowedSource) {
    const name = `owner_${new URL(url).pathname.slice(-8)}`;
    await query(`CREATE ROLE ${name} LOGIN PASSWORD 'x' CREATEROLE`);
    // On a server where the role exists, its administrator grants it.
    await query(`DO $$ BEGIN CREATE ROLE vitrina_changes NOLOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$;
      GRANT vitrina_changes TO ${name} WITH ADMIN OPTION; GRANT USAGE, CREATE ON SCHEMA content TO ${name};
      ALTER TABLE content.film OWNER TO ${name}; GRANT CREATE ON DATABASE ${new URL(url).pathname.slice(1)} TO ${name}`);
    const as = new URL(url);
    as.username = name;
    as.password = "x";
    return connect(as.href);
  }
});

describe("rights", () => {
  it("an application that may write the table needs no others, and cannot touch what is recorded", async () => {
    const name = `app_${new URL(source.url).pathname.slice(-8)}`;
    await source.query(`CREATE ROLE ${name}; GRANT USAGE ON SCHEMA content TO ${name};
      GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON content.film TO ${name}`);
    await source.install([FILM]);
    const app = await source.connect();
    await app.query(`SET ROLE ${name}`);
    await app.query("INSERT INTO content.film VALUES (1, 'a'), (2, 'b')");
    await app.query("UPDATE content.film SET title = 'c' WHERE id = 1");
    await app.query("DELETE FROM content.film WHERE id = 2");
    await app.query("TRUNCATE content.film");
    expect((await recorded()).map(({ kind }) => kind)).toEqual(["r", "r", "r", "r", "t"]);
    for (const forbidden of [
      "SELECT * FROM vitrina.changes",
      "DELETE FROM vitrina.changes_1",
      "SELECT vitrina.forget()",
      "SELECT vitrina.store('content.film', 'r', NULL, NULL)",
      "SELECT nextval('vitrina.change_number')",
      `CREATE TEMP TABLE t (id bigint); CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION vitrina.${recorderName(FILM)}()`,
    ]) {
      await expect(app.query(forbidden), forbidden).rejects.toMatchObject({ code: "42501" });
    }
    await source.query(`DROP OWNED BY ${name}; DROP ROLE ${name}`);
  });

  describe("the owner of a followed table", () => {
    const name = `owner_${process.pid}`;
    let owner: pg.Client;
    const shopFilm: RecordedTable = { ...FILM, schema: "shop" };
    beforeEach(async () => {
      await source.query(`CREATE ROLE ${name} LOGIN PASSWORD 'x'; CREATE SCHEMA shop AUTHORIZATION ${name}`);
      const url = new URL(source.url);
      url.username = name;
      url.password = "x";
      owner = await source.connect(url.toString());
      await owner.query("GRANT USAGE ON SCHEMA shop TO public; CREATE TABLE shop.film (id bigint, title text)");
    });
    afterEach(() => source.query(`DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`));

    it("does not act as the owner of the change table by a type and a cast of his own", async () => {
      await source.install([shopFilm]);
      await owner.query(`CREATE TYPE shop.own AS (n bigint);
        CREATE FUNCTION shop.own_text(shop.own) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE 'GRANT ALL ON SCHEMA vitrina TO ${name}; GRANT ALL ON ALL TABLES IN SCHEMA vitrina TO ${name}';
          RETURN 'own';
        END $$;
        CREATE CAST (shop.own AS text) WITH FUNCTION shop.own_text(shop.own);
        CREATE CAST (shop.own AS jsonb) WITH INOUT;
        ALTER TABLE shop.film DROP COLUMN id; ALTER TABLE shop.film ADD COLUMN id shop.own;
        INSERT INTO shop.film VALUES ('a', ROW(1)); UPDATE shop.film SET id = ROW(2)`);
      expect(await recorded()).toEqual([
        { relation: "shop.film", kind: "r", old: null, new: { id: "(1)" } },
        { relation: "shop.film", kind: "r", old: { id: "(1)" }, new: { id: "(2)" } },
      ]);
      await expect(owner.query("DELETE FROM vitrina.changes")).rejects.toMatchObject({ code: "42501" });
    });

    it("goes on adding partitions that a superuser has recorded, but cannot record another table in its place", async () => {
      const sale = keyedTable("shop", "sale", ID, ["day"]);
      await owner.query(`CREATE TABLE shop.sale (id bigint, day date) PARTITION BY RANGE (day);
        CREATE TABLE shop.old PARTITION OF shop.sale FOR VALUES FROM ('2025-01-01') TO ('2026-01-01') PARTITION BY LIST (id);
        CREATE TABLE shop.attached (id bigint, day date)`);
      const next = `next_${name}`;
      await source.query(
        `CREATE ROLE ${next}; GRANT USAGE, CREATE ON SCHEMA shop TO ${next}; ALTER TABLE shop.old OWNER TO ${next}`,
      );
      await source.install([sale]);
      const add = (name: string, to: string, values: string) =>
        `CREATE TABLE shop.${name} PARTITION OF shop.${to} FOR VALUES ${values}`;
      await owner.query(add("january", "sale", "FROM ('2026-01-01') TO ('2026-02-01')"));
      await owner.query(
        "ALTER TABLE shop.sale ATTACH PARTITION shop.attached FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
      );
      // The owner of one of its parts.
      await source.query(`SET ROLE ${next}; ${add("first", "old", "IN (1)")}; RESET ROLE`);
      await owner.query("INSERT INTO shop.sale VALUES (1, '2025-05-05'), (2, '2026-01-05'), (3, '2026-02-05')");
      expect((await recorded()).map((row) => row["new"])).toEqual([{ id: "1" }, { id: "2" }, { id: "3" }]);
      // An outsider to the schema cannot name the function.
      const trigger = `CREATE TRIGGER t AFTER INSERT ON shop.film FOR EACH ROW EXECUTE FUNCTION vitrina.${recorderName(sale)}()`;
      await expect(owner.query(trigger)).rejects.toMatchObject({ code: "42501" });
      // Nor does the trigger stay on what was a partition.
      await owner.query(
        "ALTER TABLE shop.sale DETACH PARTITION shop.january; INSERT INTO shop.january VALUES (4, '2026-01-06')",
      );
      expect(await recorded()).toHaveLength(3);

      // Another owner is let in when the script has run again, and until then the difference says so.
      const last = `last_${name}`;
      await source.query(
        `CREATE ROLE ${last}; GRANT USAGE, CREATE ON SCHEMA shop TO ${last}; ALTER TABLE shop.sale OWNER TO ${last}`,
      );
      const march = `SET ROLE ${last}; ${add("march", "sale", "FROM ('2026-03-01') TO ('2026-04-01')")}; RESET ROLE`;
      await expect(source.query(march)).rejects.toMatchObject({ code: "42501" });
      const reader = await source.connect(source.urls.reader);
      expect(await changesDiff(reader, [sale])).toMatchObject({
        problems: [],
        hindrances: [
          {
            relation: "shop.sale",
            message: `The owner ${last} cannot add partitions to shop.sale: run the script again.`,
          },
        ],
      });
      await source.install([sale]);
      expect(await changesDiff(reader, [sale])).toMatchObject({ problems: [], hindrances: [] });
      await source.query(march);
      await source.query(`DROP OWNED BY ${next}, ${last} CASCADE; DROP ROLE ${next}, ${last}`);
    });

    it("does not act as the superuser who runs the script, by functions that fit its calls better", async () => {
      await owner.query(`CREATE FUNCTION shop.setval(text, bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE 'RESET ROLE'; EXECUTE 'ALTER ROLE ${name} SUPERUSER'; EXECUTE 'SET LOCAL ROLE vitrina_changes';
          RETURN pg_catalog.setval($1::regclass, $2);
        END $$`);
      const superuser = await source.connect();
      await superuser.query("SET search_path = shop, public");
      await superuser.query(changesScript({ tables: [shopFilm], reader: "vitrina_reader" }));
      expect(await source.query("SELECT rolsuper FROM pg_roles WHERE rolname = $1", [name])).toEqual([
        { rolsuper: false },
      ]);
      expect((await superuser.query("SHOW search_path")).rows).toEqual([{ search_path: "shop, public" }]);
    });
  });

  it("the reader may look, and have it forgotten, and nothing else", async () => {
    await source.install([FILM]);
    const reader = await source.connect(source.urls.reader);
    await reader.query("SELECT * FROM vitrina.changes, vitrina.tables, vitrina.status");
    await reader.query("BEGIN READ WRITE; SELECT vitrina.forget(); COMMIT");
    for (const forbidden of [
      "INSERT INTO vitrina.changes (part, number, xid, relation, kind) VALUES (1, 1, '1', 'x', 'r')",
      "DELETE FROM vitrina.changes",
      "TRUNCATE vitrina.changes_1",
      "UPDATE vitrina.tables SET forgotten = NULL",
      "SELECT * FROM vitrina.state",
      "SELECT nextval('vitrina.change_number')",
      "SELECT setval('vitrina.change_stop', 1)",
      "SELECT vitrina.store('content.film', 'r', NULL, NULL)",
      "SELECT vitrina.readers_of(1::smallint, '[]')",
      "CREATE TABLE vitrina.own (id bigint)",
      "SET ROLE vitrina_changes",
    ]) {
      await expect(reader.query(`BEGIN READ WRITE; ${forbidden}`), forbidden).rejects.toMatchObject({ code: "42501" });
      await reader.query("ROLLBACK");
    }
  });

  it("a role that may not read the change table is told so", async () => {
    await source.install([FILM]);
    await source.query("REVOKE SELECT ON vitrina.changes FROM vitrina_reader");
    const films = await source.follow(FILMS);
    await expect(films.start()).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "The source has no change table: the role that reads it may not use it.",
    });
  });
});

describe("the difference between what is recorded and what is needed", () => {
  const GENRE = keyedTable("content", "genre", ID, ["name"]);
  it("names what is missing, different and surplus", async () => {
    await source.query("CREATE TABLE content.genre (id bigint, name text)");
    const session = await source.connect();
    expect(await changesDiff(session, [FILM])).toEqual({
      isInstalled: false,
      problems: [
        { relation: "content.film", problem: "missing", message: "Changes of content.film are not recorded." },
      ],
      hindrances: [],
      surplus: [],
      remarks: [],
    });
    await source.install([FILM]);
    expect(await changesDiff(session, [FILM])).toEqual({
      isInstalled: true,
      problems: [],
      hindrances: [],
      surplus: [],
      remarks: [],
    });
    await source.query("CREATE PUBLICATION all_of_it FOR ALL TABLES");
    expect(await changesDiff(session, [GENRE])).toEqual({
      isInstalled: true,
      problems: [
        {
          relation: "content.genre",
          problem: "missing",
          message: "content.genre has no trigger that records its changes.",
        },
        { relation: "content.genre", problem: "missing", message: "Changes of content.genre are not recorded." },
      ],
      hindrances: [],
      surplus: [{ relation: "content.film", columns: "all" }],
      remarks: [expect.stringContaining("The publication all_of_it is FOR ALL TABLES")],
    });
    const { surplus, problems } = await changesDiff(session, [keyedTable("content", "film", ID, ["year"])]);
    expect(surplus).toEqual([{ relation: "content.film", columns: ["title"] }]);
    expect(problems.map(({ message }) => message)).toEqual(["Changes of content.film are recorded without year."]);
  });
});
