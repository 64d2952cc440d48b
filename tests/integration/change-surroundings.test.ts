import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Follower } from "../../src/connectors/follower.ts";
import { openFollower } from "../../src/connectors/postgres/changes/follower.ts";
import { planQuery } from "../../src/connectors/postgres/changes/plan-query.ts";
import { watchedTables } from "../../src/connectors/postgres/changes/recorder.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import { type FollowedSource, LIMITS, openFollowedSource } from "../support/followed-source.ts";
import { KEEP, type SlotServer, startSlotServer } from "../support/slot-server.ts";
import { until } from "../support/until.ts";

/** What the rows depend on besides tables and views, and what is altered there although no row is written. */

interface Query {
  readonly sql: string;
  readonly follower: Follower;
  position(): Promise<FollowPosition>;
  since(position: FollowPosition): Promise<unknown>;
  /** The same by a follower that is opened only now. */
  freshSince(position: FollowPosition): Promise<unknown>;
  changed(position: FollowPosition): Promise<boolean>;
}

const EVERYTHING = (reason: RegExp) => ({ kind: "everything", reason: expect.stringMatching(reason) });
const NOTHING = { kind: "keys", changes: 0, keys: [], mayLackKeys: false };
const BASE = (s: string): string => `
  CREATE SCHEMA ${s}; GRANT USAGE ON SCHEMA ${s} TO vitrina_reader;
  ALTER DEFAULT PRIVILEGES IN SCHEMA ${s} GRANT SELECT ON TABLES TO vitrina_reader;
  CREATE TYPE ${s}.mood AS ENUM ('ok', 'bad');
  CREATE TYPE ${s}.pair AS (x integer, y text);
  CREATE TABLE ${s}.other (a integer, b integer);
  CREATE TABLE ${s}.film (id bigint PRIMARY KEY, title text, score numeric NOT NULL, at timestamptz NOT NULL DEFAULT '2020-05-01');
  INSERT INTO ${s}.film SELECT n, 'the running dogs ' || n, n FROM generate_series(1, 9) n`;

const TYPE = (name: string): RegExp => new RegExp(`^The type s\\d+\\.${name} was altered\\.$`);
const SEARCH = /^A configuration or a dictionary of text search was altered\.$/;
const CONFIGURATION = (s: string): string => `CREATE TEXT SEARCH DICTIONARY ${s}.words (TEMPLATE = simple);
  CREATE TEXT SEARCH CONFIGURATION ${s}.german (COPY = german)`;

interface Case {
  readonly what: string;
  readonly before?: (s: string) => string;
  /** Of the column `value`, in a query or in a view. */
  readonly value: (s: string) => string;
  readonly alter: (s: string) => string;
  readonly reason: RegExp;
}

const CASES: readonly Case[] = [
  {
    what: "a field of a composite type that a row is made of gets another name",
    value: (s) => `to_jsonb(ROW(f.score::integer, f.title)::${s}.pair)`,
    alter: (s) => `ALTER TYPE ${s}.pair RENAME ATTRIBUTE y TO zz`,
    reason: TYPE("pair"),
  },
  {
    what: "a table gets a column whose row type is filled from JSON",
    value: (s) => `to_jsonb(jsonb_populate_record(NULL::${s}.other, jsonb_build_object('a', f.score, 'd', 1)))`,
    alter: (s) => `ALTER TABLE ${s}.other ADD d integer`,
    reason: TYPE("other"),
  },
  {
    what: "an enum gets a label whose range is asked for",
    value: (s) => `f.id || enum_range(NULL::${s}.mood)::text`,
    alter: (s) => `ALTER TYPE ${s}.mood ADD VALUE 'so-so' BEFORE 'bad'`,
    reason: TYPE("mood"),
  },
  {
    what: "a label gets another name in what a list of columns in FROM is made of",
    value: (s) =>
      `(SELECT x.m::text FROM jsonb_to_record(jsonb_build_object('m', enum_first(NULL::${s}.mood), 'n', f.id)) AS x (m ${s}.mood, n int))`,
    alter: (s) => `ALTER TYPE ${s}.mood RENAME VALUE 'ok' TO 'fine'`,
    reason: TYPE("mood"),
  },
  {
    what: "a text search configuration maps words otherwise",
    before: CONFIGURATION,
    value: (s) => `to_tsvector('${s}.german', f.title)::text`,
    alter: (s) => `ALTER TEXT SEARCH CONFIGURATION ${s}.german ALTER MAPPING FOR asciiword WITH simple`,
    reason: SEARCH,
  },
  {
    what: "a dictionary reads its files again",
    before: CONFIGURATION,
    value: (s) => `to_tsvector('${s}.german', f.title)::text`,
    alter: (s) => `ALTER TEXT SEARCH DICTIONARY ${s}.words (unknown)`,
    reason: SEARCH,
  },
];

describe.each(["change table", "slot"] as const)("by the %s", (log) => {
  let server: SlotServer | undefined;
  let source: FollowedSource;
  const opened: Follower[] = [];
  beforeAll(async () => {
    if (log === "slot") server = await startSlotServer();
    source = await openFollowedSource(server && { kind: "slot", name: "surroundings", ...KEEP, serverUrl: server.url });
  });
  afterAll(async () => {
    await Promise.all(opened.map((one) => one.close()));
    await source?.drop();
    await server?.stop();
  });

  let number = 0;
  const schema = async (more?: Case["before"]): Promise<string> => {
    number += 1;
    await source.query(BASE(`s${number}`));
    if (more !== undefined) await source.query(more(`s${number}`));
    return `s${number}`;
  };

  async function open(s: string, sql: string): Promise<Follower> {
    const request = {
      query: sql,
      key: ["id"],
      columns: [
        { name: "id", type: "bigint" },
        { name: "value", type: "text" },
      ],
    };
    const rules = { allowedSchemas: [s], allowedFunctions: [] };
    return openFollower(source.config, { ...request, tables: {} }, planQuery(rules));
  }

  async function follow(s: string, sql: string): Promise<Query> {
    const follower = await open(s, sql);
    opened.push(follower);
    expect(follower.plan.refusals).toEqual([]);
    await source.install(watchedTables(follower.plan.tables));
    const watch = source.watch();
    const sinceIn = async (one: Follower, position: FollowPosition): Promise<unknown> => {
      const round = await one.openRound();
      try {
        return await round.keysSince(position, LIMITS);
      } finally {
        await round.close();
      }
    };
    return {
      sql,
      follower,
      async position() {
        const round = await follower.openRound();
        await round.close();
        return round.position;
      },
      since: (position) => sinceIn(follower, position),
      async freshSince(position) {
        const fresh = await open(s, sql);
        const found = await sinceIn(fresh, position);
        await fresh.close();
        return found;
      },
      async changed(position) {
        const tables = follower.plan.tables.map(({ name }) => `${s}.${name}`);
        return (await watch.changedSince([{ pipelineId: "p", position, tables }])).length === 1;
      },
    };
  }

  async function expectCompared(query: Query, alter: string, reason: RegExp): Promise<void> {
    const start = await query.position();
    expect(await query.changed(start)).toBe(false);
    expect(await query.follower.isCurrent()).toBe(true);
    expect(await query.since(start)).toEqual(NOTHING);
    await source.query(alter);
    expect(await query.changed(start)).toBe(true);
    expect(await query.follower.isCurrent()).toBe(false);
    expect(await query.freshSince(start)).toEqual(EVERYTHING(reason));
    expect(await query.since(start)).toEqual(EVERYTHING(reason));
    const next = await query.position();
    expect(await query.changed(next)).toBe(false);
    expect(await query.since(next)).toEqual(NOTHING);
  }

  // Both logs ask the same for the rest.
  it.each(log === "slot" ? CASES.slice(0, 1) : CASES)("everything is compared when $what", async (one) => {
    const s = await schema(one.before);
    await expectCompared(
      await follow(s, `SELECT f.id, ${one.value(s)} AS value FROM ${s}.film f`),
      one.alter(s),
      one.reason,
    );
  });

  const IN_VIEWS: readonly Case[] = [
    {
      what: "a label gets another name that an expression has",
      value: (s) => `(CASE WHEN f.score > 5 THEN 'ok'::${s}.mood ELSE 'bad'::${s}.mood END)::text`,
      alter: (s) => `ALTER TYPE ${s}.mood RENAME VALUE 'ok' TO 'fine'`,
      reason: TYPE("mood"),
    },
    ...CASES.slice(0, 1),
  ];
  it.each(IN_VIEWS)("the same in a view behind a view: $what", async ({ value, alter, reason }) => {
    const s = await schema();
    await source.query(`CREATE VIEW ${s}.inner AS SELECT f.id, ${value(s)} AS value FROM ${s}.film f;
      CREATE VIEW ${s}.outer AS SELECT id, value FROM ${s}.inner`);
    await expectCompared(await follow(s, `SELECT v.id, v.value FROM ${s}.outer v`), alter(s), reason);
  });

  if (log === "change table")
    it("a configuration of text search is one also in a virtual column", async () => {
      const [version] = await source.query("SELECT current_setting('server_version_num')::int AS number");
      if (Number(version?.["number"]) < 180_000) return;
      const s = await schema(CONFIGURATION);
      await source.query(
        `ALTER TABLE ${s}.film ADD words tsvector GENERATED ALWAYS AS (to_tsvector('${s}.german', title)) VIRTUAL`,
      );
      const query = await follow(s, `SELECT f.id, f.words::text AS value FROM ${s}.film f`);
      const alter = `ALTER TEXT SEARCH CONFIGURATION ${s}.german ALTER MAPPING FOR asciiword WITH simple`;
      await expectCompared(query, alter, SEARCH);
    });

  const SETTINGS: readonly (readonly [setting: string, by: string, value: string])[] = [
    ["default_text_search_config", "f.title @@ 'dog'", "pg_catalog.german"],
    ["default_text_search_config", "to_tsvector(f.title)::text", "pg_catalog.german"],
    ["lc_time", "to_char(f.at, 'TMMonth')", "POSIX"],
    ["lc_numeric", "to_char(f.score, '9D99')", "POSIX"],
    ["timezone_abbreviations", "f.at AT TIME ZONE f.title", "India"],
    ["timezone_abbreviations", "f.title::timestamptz", "India"],
  ];
  it.each(log === "slot" ? [] : SETTINGS)(
    "everything is compared when %s is another, for %s",
    async (setting, by, value) => {
      const s = await schema();
      const query = await follow(s, `SELECT f.id, (${by})::text AS value FROM ${s}.film f`);
      const start = await query.position();
      expect(await query.changed(start)).toBe(false);
      const [database] = await source.query("SELECT quote_ident(current_database()) AS name");
      const owner = setting.startsWith("lc_")
        ? `ROLE vitrina_reader IN DATABASE ${database?.["name"]}`
        : `DATABASE ${database?.["name"]}`;
      await source.query(`ALTER ${owner} SET ${setting} = '${value}'`);
      try {
        expect(await query.changed(start)).toBe(true);
        // Its session still has the value of before.
        expect(await query.follower.isCurrent()).toBe(false);
        const reason = EVERYTHING(new RegExp(`^The setting ${setting} was altered for the database or the reader\\.$`));
        expect(await query.since(start)).toEqual(reason);
        const later = await follow(s, query.sql);
        const next = await later.position();
        expect(await later.changed(next)).toBe(false);
        expect(await later.freshSince(next)).toEqual(NOTHING);
      } finally {
        await source.query(`ALTER ${owner} RESET ${setting}`);
      }
    },
  );

  // The other log shares its server with all tests.
  if (log === "slot")
    it("a round notices a setting of the whole server", async () => {
      const s = await schema();
      const query = await follow(s, `SELECT f.id, to_tsvector(f.title)::text AS value FROM ${s}.film f`);
      const start = await query.position();
      await source.query("ALTER SYSTEM SET default_text_search_config = 'pg_catalog.german'");
      await source.query("SELECT pg_reload_conf()");
      const reason = EVERYTHING(/^The setting default_text_search_config was altered\.$/);
      await until("the server has heard of it", async () => {
        const [row] = await source.query("SELECT current_setting('default_text_search_config') AS now");
        return row?.["now"] === "pg_catalog.german";
      });
      expect(await query.freshSince(start)).toEqual(reason);
    });

  it("a plan is not used for another table that got the name of one behind a view", async () => {
    const s = await schema();
    await source.query(`CREATE TABLE ${s}.next (LIKE ${s}.film INCLUDING ALL);
      CREATE VIEW ${s}.shown AS SELECT id, title AS value FROM ${s}.film`);
    const query = await follow(s, `SELECT v.id, v.value FROM ${s}.shown v`);
    const { tables } = query.follower.plan;
    expect(await query.follower.isCurrent()).toBe(true);
    await source.query(`ALTER TABLE ${s}.film RENAME TO film_old`);
    await source.query(`ALTER TABLE ${s}.next RENAME TO film`);
    await source.install(watchedTables(tables));
    expect(await query.follower.isCurrent()).toBe(false);
    await expect(query.position()).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED" });
    await source.install(watchedTables(query.follower.plan.tables));
    const start = await query.position();
    await source.query(`INSERT INTO ${s}.film VALUES (30, 'in the other table', 1)`);
    await source.query(`UPDATE ${s}.film_old SET title = 'in the view' WHERE id = 3`);
    expect(await query.since(start)).toEqual({ ...NOTHING, changes: 1, keys: [["3"]] });
  });

  it("what a query does not depend on is not asked for", async () => {
    const s = await schema();
    const query = await follow(s, `SELECT f.id, upper(f.title) AS value FROM ${s}.film f`);
    const names = Object.keys((await query.position()).fingerprint);
    expect(names.filter((name) => /^(type|setting|value of|text search)/.test(name))).toEqual([]);
  });
});
