import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rowTriggerName } from "../../src/connectors/postgres/changes/recorder.ts";
import { removalScript } from "../../src/connectors/postgres/changes/script.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import type { FollowedTable } from "../../src/sql-analysis/follow-plan.ts";
import {
  type FollowedQuery,
  type FollowedSource,
  keyedTable,
  openFollowedSource,
  type WrittenQuery,
} from "../support/followed-source.ts";

/** What no trigger tells of makes a round compare everything, and say why; and the watcher sees it, too. */

const ID = { name: "id", type: "bigint" };
const idsOf = (relation: string, tables: readonly FollowedTable[]): WrittenQuery => ({
  query: `SELECT id, title FROM ${relation}`,
  key: ["id"],
  columns: [ID, { name: "title", type: "text" }],
  tables,
});

let source: FollowedSource;
beforeAll(async () => {
  source = await openFollowedSource();
});
afterAll(() => source.drop());

const COLUMNS = "(id bigint PRIMARY KEY, title text, year integer)";
const plain = (name: string): string => `CREATE TABLE content.${name} ${COLUMNS}`;
const inParts = (name: string): string => `
  CREATE TABLE content.${name} ${COLUMNS} PARTITION BY RANGE (id);
  CREATE TABLE content.${name}_a PARTITION OF content.${name} FOR VALUES FROM (0) TO (10);
  CREATE TABLE content.${name}_b PARTITION OF content.${name} FOR VALUES FROM (10) TO (1000)`;

interface Film {
  readonly name: string;
  readonly table: FollowedTable;
  readonly films: FollowedQuery;
}

let number = 0;
async function film(create = plain): Promise<Film> {
  number += 1;
  const name = `film_${number}`;
  await source.query(create(name));
  await source.query(`INSERT INTO content.${name} SELECT n, 'film ' || n FROM generate_series(1, 20) n`);
  const table = keyedTable("content", name, ID, ["title"]);
  await source.install([table]);
  return { name, table, films: await source.follow(idsOf(`content.${name}`, [table])) };
}

const changed = async (name: string, position: FollowPosition): Promise<boolean> => {
  const watch = source.watch();
  const found = await watch.changedSince([{ pipelineId: "p", position, tables: [`content.${name}`] }]);
  return found.length === 1;
};

const EVERYTHING = (reason: RegExp) => ({ kind: "everything", reason: expect.stringMatching(reason) });

describe("what happens to a table between two rounds", () => {
  const REWRITTEN = /^content\.film_\d+ was truncated or rewritten\.$/;
  const OTHER_PARTS = /^A partition of content\.film_\d+ was attached or removed\.$/;
  const SWITCHED = /^The trigger on content\.film_\d+ was switched off or on, or recreated\.$/;
  const ALTERED = /^Columns of content\.film_\d+ were altered\.$/;

  type Happening = (name: string, trigger: string) => readonly string[];
  const HAPPENINGS: readonly (readonly [string, Happening, RegExp, typeof plain])[] = [
    ["is truncated", (t) => [`TRUNCATE content.${t}`], REWRITTEN, plain],
    ["is truncated in part", (t) => [`TRUNCATE content.${t}_a`], REWRITTEN, inParts],
    ["is rewritten by VACUUM FULL", (t) => [`VACUUM FULL content.${t}`], REWRITTEN, plain],
    [
      "gets another type by ALTER TYPE USING",
      (t) => [`ALTER TABLE content.${t} ALTER title TYPE varchar(80) USING upper(title)`],
      ALTERED,
      plain,
    ],
    [
      "has its trigger off for a while",
      (t, trigger) => [
        `ALTER TABLE content.${t} DISABLE TRIGGER USER`,
        `UPDATE content.${t} SET title = 'unseen'`,
        `ALTER TABLE content.${t} ENABLE ALWAYS TRIGGER ${trigger}`,
      ],
      SWITCHED,
      plain,
    ],
    [
      "has the trigger of a partition off for a while",
      (t, trigger) => [
        `ALTER TABLE content.${t}_a DISABLE TRIGGER ${trigger}`,
        `UPDATE content.${t} SET title = 'unseen' WHERE id = 1`,
        `ALTER TABLE content.${t}_a ENABLE ALWAYS TRIGGER ${trigger}`,
      ],
      SWITCHED,
      inParts,
    ],
    [
      "gets a partition",
      (t) => [
        `CREATE TABLE content.${t}_c ${COLUMNS}`,
        `INSERT INTO content.${t}_c VALUES (1001, 'brought along')`,
        `ALTER TABLE content.${t} ATTACH PARTITION content.${t}_c FOR VALUES FROM (1000) TO (2000)`,
      ],
      OTHER_PARTS,
      inParts,
    ],
    ["loses a partition", (t) => [`ALTER TABLE content.${t} DETACH PARTITION content.${t}_a`], OTHER_PARTS, inParts],
    ["loses a partition for good", (t) => [`DROP TABLE content.${t}_a`], OTHER_PARTS, inParts],
  ];

  it.each(HAPPENINGS)("a table that %s is compared as a whole, once", async (_, happens, reason, create) => {
    const { name, table, films } = await film(create);
    const start = await films.start();
    expect(await changed(name, start)).toBe(false);
    for (const statement of happens(name, rowTriggerName(table))) await source.query(statement);
    expect(await films.since(start)).toEqual(EVERYTHING(reason));
    expect(await changed(name, start)).toBe(true);
    const next = await films.start();
    expect(await changed(name, next)).toBe(false);
    await source.query(`INSERT INTO content.${name} VALUES (30, 'new')`);
    expect(await films.since(next)).toEqual({ kind: "keys", changes: 1, keys: [["30"]] });
    expect(await changed(name, next)).toBe(true);
  });

  const CATALOGUE_ONLY: readonly (readonly [string, (name: string) => string])[] = [
    ["gets a column", (t) => `ALTER TABLE content.${t} ADD added integer`],
    ["has a column renamed", (t) => `ALTER TABLE content.${t} RENAME year TO shown_in`],
    ["loses a column", (t) => `ALTER TABLE content.${t} DROP year`],
    ["has a label of an enum renamed", (t) => `ALTER TYPE content.${t}_mood RENAME VALUE 'sad' TO 'blue'`],
    [
      "has a label of an enum in a domain renamed",
      (t) => `ALTER TYPE content.${t}_taste RENAME VALUE 'sour' TO 'tart'`,
    ],
  ];
  it.each(CATALOGUE_ONLY)("the watcher sees at once that a table %s, although no row changes", async (_, altered) => {
    const { name, films } = await film(
      (t) => `CREATE TYPE content.${t}_mood AS ENUM ('happy', 'sad');
        CREATE TYPE content.${t}_taste AS ENUM ('sweet', 'sour');
        CREATE DOMAIN content.${t}_flavour AS content.${t}_taste;
        CREATE TABLE content.${t} (id bigint PRIMARY KEY, title text, year integer, moods content.${t}_mood[], flavour content.${t}_flavour)`,
    );
    const start = await films.start();
    for (const _look of [1, 2, 3]) expect(await changed(name, start)).toBe(false);
    await source.query(altered(name));
    expect(await changed(name, start)).toBe(true);
    // The query reads none of these columns: nothing is compared, and the next look finds nothing new.
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 0, keys: [] });
    expect(await changed(name, await films.start())).toBe(false);
  });

  it("a table that was dropped and made again is compared as a whole", async () => {
    const { name, table, films } = await film();
    const start = await films.start();
    await source.query(`DROP TABLE content.${name}`);
    await source.query(plain(name));
    expect(await changed(name, start)).toBe(true);
    await expect(films.since(start)).rejects.toMatchObject({ code: "CHANGES_NOT_RECORDED" });
    await source.install([table]);
    expect(await films.since(start)).toEqual(EVERYTHING(/^content\.film_\d+ was dropped and made again\.$/));
  });

  it("a column that is gone fails no write, and everything is compared when it is back", async () => {
    const { name, table, films } = await film();
    const start = await films.start();
    await source.query(`ALTER TABLE content.${name} RENAME title TO name`);
    await source.query(`UPDATE content.${name} SET name = 'other' WHERE id = 1`);
    await source.query(`ALTER TABLE content.${name} RENAME name TO title`);
    expect(await films.since(start)).toEqual(EVERYTHING(/^A change of content\.film_\d+ could not be recorded\.$/));
    await source.query(`ALTER TABLE content.${name} DROP title`);
    await source.query(`DELETE FROM content.${name} WHERE id = 2`);
    await source.query(`ALTER TABLE content.${name} ADD title text`);
    expect(await films.since(start)).toEqual(EVERYTHING(/^Columns of/));
    expect(table.readColumns).toContain("title");
  });

  const OF_TYPES: readonly (readonly [what: string, type: (x: string) => string, alter: (x: string) => string])[] = [
    [
      "a label of an enum gets another name",
      (x) => `CREATE TYPE ${x} AS ENUM ('short', 'long')`,
      (x) => `ALTER TYPE ${x} RENAME VALUE 'long' TO 'feature'`,
    ],
    [
      "a composite type gets a field",
      (x) => `CREATE TYPE ${x} AS (city text)`,
      (x) => `ALTER TYPE ${x} ADD ATTRIBUTE zip text`,
    ],
    [
      "a field of a composite type gets another name",
      (x) => `CREATE TYPE ${x} AS (city text)`,
      (x) => `ALTER TYPE ${x} RENAME ATTRIBUTE city TO town`,
    ],
    [
      "a label of an enum gets another name in a composite type, in a domain over an array of it",
      (x) => `CREATE TYPE ${x}_label AS ENUM ('short', 'long'); CREATE TYPE ${x}_pair AS (a ${x}_label, b integer);
        CREATE DOMAIN ${x} AS ${x}_pair[]`,
      (x) => `ALTER TYPE ${x}_label RENAME VALUE 'long' TO 'feature'`,
    ],
  ];
  it.each(OF_TYPES)("when %s, everything is compared, though no row was written", async (_, type, alter) => {
    number += 1;
    const name = `film_${number}`;
    await source.query(type(`content.${name}_kind`));
    await source.query(`CREATE TABLE content.${name} (id bigint PRIMARY KEY, title content.${name}_kind)`);
    const table = keyedTable("content", name, ID, ["title"]);
    await source.install([table]);
    const films = await source.follow(idsOf(`content.${name}`, [table]));
    const start = await films.start();
    expect(await changed(name, start)).toBe(false);
    await source.query(alter(`content.${name}_kind`));
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(EVERYTHING(/^Columns of/));
  });

  it("a column that is computed in another way when it is read makes everything be compared", async () => {
    const [version] = await source.query("SELECT current_setting('server_version_num')::int AS number");
    if (Number(version?.["number"]) < 180_000) return;
    const { name, films } = await film(
      (t) =>
        `CREATE TABLE content.${t} (id bigint PRIMARY KEY, title text, double bigint GENERATED ALWAYS AS (id * 2) VIRTUAL)`,
    );
    const start = await films.start();
    expect(await changed(name, start)).toBe(false);
    await source.query(`ALTER TABLE content.${name} ALTER double SET EXPRESSION AS (id * 3)`);
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(
      EVERYTHING(/^content\.film_\d+ computes a column otherwise than before\.$/),
    );
  });

  it("a new column that nobody reads is of no interest", async () => {
    const { name, films } = await film();
    const start = await films.start();
    await source.query(`ALTER TABLE content.${name} ADD other integer DEFAULT 7`);
    await source.query(`UPDATE content.${name} SET other = 8`);
    expect(await films.since(start)).toEqual({ kind: "keys", changes: 0, keys: [] });
  });
});

describe("what happens to the rest of a source", () => {
  it("a view that was replaced is noticed, also behind another view", async () => {
    const { name, table } = await film();
    await source.query(`CREATE VIEW content.${name}_inner AS SELECT id, title FROM content.${name}`);
    await source.query(`CREATE VIEW content.${name}_outer AS SELECT id, title FROM content.${name}_inner`);
    const films = await source.follow(idsOf(`content.${name}_outer`, [table]));
    const start = await films.start();
    expect(await changed(name, start)).toBe(false);
    await source.query(
      `CREATE OR REPLACE VIEW content.${name}_inner AS SELECT id, upper(title) AS title FROM content.${name}`,
    );
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(EVERYTHING(/^The view content\.film_\d+_inner was altered\.$/));
  });

  it("the watcher sees that a view was replaced whose name has dots", async () => {
    const { name, table } = await film();
    const [view, other] = [`content."${name}.v 1"`, `content."${name}.v 2"`];
    await source.query(`CREATE VIEW ${view} AS SELECT id, title FROM content.${name}`);
    await source.query(`CREATE VIEW ${other} AS SELECT id, title FROM ${view}`);
    const films = await source.follow(idsOf(other, [table]));
    const start = await films.start();
    expect(await changed(name, start)).toBe(false);
    await source.query(`CREATE OR REPLACE VIEW ${view} AS SELECT id, upper(title) AS title FROM content.${name}`);
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(EVERYTHING(/^The view "content"\."film_\d+\.v 1" was altered\.$/));
    expect(await changed(name, await films.start())).toBe(false);
  });

  it("a view with a column of another name is noticed, because its rows may be read as a whole", async () => {
    const { name, table } = await film();
    await source.query(`CREATE VIEW content.${name}_view AS SELECT id, title FROM content.${name}`);
    const films = await source.follow({
      ...idsOf(`content.${name}_view`, [table]),
      query: `SELECT v.id, to_jsonb(v) ->> 'title' AS title FROM content.${name}_view v`,
    });
    const start = await films.start();
    await source.query(`ALTER VIEW content.${name}_view RENAME title TO name`);
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(EVERYTHING(/^The view content\.film_\d+_view was altered\.$/));
  });

  it("another server, another time line, or a source that went back to an earlier state is noticed", async () => {
    const { name, films } = await film();
    const start = await films.start();
    const as = (part: string, value: string): FollowPosition => ({
      ...start,
      fingerprint: { ...start.fingerprint, [part]: value },
    });
    expect(await films.since(as("server", "1 2"))).toEqual(EVERYTHING(/^The source is another server or database/));
    expect(await films.since(as("timeline", "2"))).toEqual(EVERYTHING(/^The source was restored, or a standby/));
    expect(await changed(name, as("timeline", "2"))).toBe(true);
    // Started again: the watcher leaves it to the round, which looks at the WAL.
    expect(await changed(name, as("start", "2"))).toBe(true);
    expect(await films.since({ ...as("start", "2"), written: "FFFF/0" })).toEqual(
      EVERYTHING(/^The source was started from an earlier state/),
    );
    const [xmin = "", xmax = ""] = start.snapshot.split(":");
    const ahead = { ...start, snapshot: `${xmin}:${BigInt(xmax) + 1000n}:` };
    expect(await films.since(ahead)).toEqual(EVERYTHING(/^The source went back to an earlier state/));
    expect(await changed(name, ahead)).toBe(true);
  });

  it("a change that is no longer there is noticed", async () => {
    const { name, films } = await film();
    await source.query(`UPDATE content.${name} SET title = 'x' WHERE id = 1`);
    const start = await films.start();
    expect(start.lastChange).not.toBeNull();
    expect((await films.since(start)).kind).toBe("keys");
    await source.query("DELETE FROM vitrina.changes WHERE relation = $1", [`content.${name}`]);
    expect(await changed(name, start)).toBe(true);
    expect(await films.since(start)).toEqual(EVERYTHING(/^The change table lacks a change that was there before\.$/));
  });

  it("a change table that was removed and installed again is noticed", async () => {
    const { name, table, films } = await film();
    const start = await films.start();
    await source.query(removalScript());
    expect(await changed(name, start)).toBe(true);
    await expect(films.since(start)).rejects.toMatchObject({
      code: "CHANGES_NOT_RECORDED",
      message: "The source has no change table: it is not installed.",
    });
    await source.install([table]);
    expect(await films.since(start)).toEqual(EVERYTHING(/^The change table was removed and installed again\.$/));
  });
});
