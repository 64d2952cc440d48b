import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readQueryFacts } from "../../src/connectors/postgres/changes/query-facts.ts";
import type { ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import { planFollow } from "../../src/sql-analysis/plan-follow.ts";
import { createTestDatabase } from "../support/database.ts";
import { startSlotServer } from "../support/slot-server.ts";
import { until } from "../support/until.ts";
import {
  bringUpToDate,
  createMart,
  differs,
  type FollowingDatabase,
  fill,
  follow,
  openFollowing,
  stepArbitrary,
} from "./following.ts";
import { byChangeTable } from "./recorders.ts";
import { REFUSED } from "./refusals.ts";
import { SCHEMA } from "./schema.ts";

const IGNORED = { on_change: "ignore" as const };

/** What is refused would go wrong: each reason is shown to be one by a mart that is not equal to its query any more. */

let following: FollowingDatabase;
beforeAll(async () => {
  following = await openFollowing();
  await fill(following.client, 12);
});
afterAll(() => following.close());

async function isAtLeast(version = 0): Promise<boolean> {
  const { rows } = await following.client.query("SELECT current_setting('server_version_num')::int AS version");
  return rows[0].version >= version;
}

describe("with the way that somebody might think of", () => {
  it("random changes are missed", async () => {
    const demonstrated = REFUSED.filter(({ naive }) => naive !== undefined);
    let place = await following.recorder.now(following.client);
    const unmet = new Set(demonstrated.map(({ name }) => name));
    const marts = [];
    for (const [number, query] of demonstrated.entries()) {
      const plan = await following.plan(query, query.naive);
      expect(plan.refusals).toEqual([]);
      marts.push(await createMart(following.client, query, plan, number));
    }
    for (const step of fc.sample(stepArbitrary, 200)) {
      const left = marts.filter(({ query }) => unmet.has(query.name));
      if (left.length === 0) break;
      const { violated, place: next } = await follow(following, left, [step], place);
      place = next;
      for (const name of violated) unmet.delete(name.replace(/, round \d+$/, ""));
    }
    expect([...unmet]).toEqual([]);
  });

  /** `happens` changes the rows that `changed` has. */
  interface Demonstration {
    readonly what: string;
    readonly create: string;
    readonly key: string;
    readonly sql: string;
    readonly refusal: string;
    readonly table: string;
    readonly keys: string;
    readonly happens: string;
    readonly changed: string;
    /** The oldest server that knows such a thing. */
    readonly since?: number;
  }
  const DEMONSTRATIONS: readonly Demonstration[] = [
    {
      what: "which of several equal values a group prints",
      create: "CREATE TABLE content.priced (code numeric); INSERT INTO content.priced VALUES (1.0), (1.00)",
      key: "k",
      sql: "SELECT p.code::text AS k, count(*) AS n FROM content.priced p GROUP BY p.code",
      refusal: "values that are equal without being the same",
      table: "priced",
      keys: "SELECT c.code::text FROM changed c",
      happens: "DELETE FROM content.priced WHERE code::text = (SELECT min(k) FROM marts.m0)",
      changed: "SELECT k::numeric AS code FROM marts.m0",
    },
    {
      what: "which of several equal values DISTINCT prints, of rows in several partitions",
      create: `CREATE TABLE content.offered (code numeric, shop text);
        INSERT INTO content.offered VALUES (1.0, 'a'), (1.00, 'b')`,
      key: "k",
      sql: "SELECT g.code::text AS k, g.n FROM (SELECT DISTINCT o.code, rank() OVER (PARTITION BY o.shop) AS n FROM content.offered o) g",
      refusal: "values that are equal without being the same",
      table: "offered",
      keys: "SELECT o.code::text FROM changed c JOIN present.offered o ON o.shop = c.shop",
      happens: "DELETE FROM content.offered WHERE code::text = (SELECT min(k) FROM marts.m0)",
      changed: "SELECT k::numeric AS code, CASE k WHEN '1.0' THEN 'a' ELSE 'b' END AS shop FROM marts.m0",
    },
    {
      what: "the partition of a group that prints one of several equal values",
      create: `CREATE TABLE content.sold (code numeric, film_id int);
        INSERT INTO content.sold VALUES (1.00, 1), (1.0, 1), (1.00, 2), (1.00, 2), (1.00, 2), (1.0, 3), (1.0, 3), (1.0, 3)`,
      key: "film_id",
      sql: "SELECT s.film_id, rank() OVER (PARTITION BY s.code::text ORDER BY count(*)) AS n FROM content.sold s GROUP BY s.code, s.film_id",
      refusal: "values that are equal without being the same",
      table: "sold",
      keys: "SELECT s.film_id FROM changed c JOIN present.sold s ON s.code::text = c.code::text",
      // Of the text that the group does not print: whichever it is, other films are in the group's partition.
      happens: `INSERT INTO content.sold SELECT o.code, 1 FROM content.sold o CROSS JOIN generate_series(1, 5)
         WHERE o.film_id = 1 AND o.code::text <> (SELECT code::text FROM content.sold WHERE film_id = 1 GROUP BY code)`,
      changed: `SELECT DISTINCT ON (o.code::text) o.code, 1 AS film_id FROM content.sold o
         WHERE o.film_id = 1 AND o.code::text <> (SELECT code::text FROM content.sold WHERE film_id = 1 GROUP BY code)`,
    },
    {
      what: "what a set operation makes of values of different types",
      create: "CREATE TABLE content.whole (v int); CREATE TABLE content.exact (v numeric)",
      key: "k",
      sql: "SELECT u.v / 2 AS k FROM (SELECT w.v FROM content.whole w UNION ALL SELECT e.v FROM content.exact e) u",
      refusal: "SELECTs have different types there",
      table: "whole",
      keys: "SELECT c.v / 2 FROM changed c",
      happens: "INSERT INTO content.whole VALUES (3)",
      changed: "SELECT 3 AS v",
    },
    {
      what: "what USING makes of columns of different types",
      create: `CREATE TABLE content.short (small real, id int); CREATE TABLE content.long (small double precision, n int)`,
      key: "k",
      sql: "SELECT small::text AS k, s.id FROM content.short s LEFT JOIN content.long l USING (small)",
      refusal: "The key k is computed in a way that cannot be followed.",
      table: "short",
      keys: "SELECT c.small::text FROM changed c",
      happens: "INSERT INTO content.short VALUES (0.1, 1)",
      changed: "SELECT 0.1::real AS small, 1 AS id",
    },
    {
      what: "a way by an equality of the type's own",
      create: `CREATE TABLE content.loud (id int, name content.citext); INSERT INTO content.loud VALUES (1, 'a')`,
      key: "id",
      sql: "SELECT l.id, count(*) OVER (PARTITION BY l.name) AS n FROM content.loud l",
      refusal: "The way to the key compares name, of the type content.citext",
      table: "loud",
      keys: "SELECT l.id FROM changed c JOIN present.loud l ON l.name::text = c.name::text",
      happens: "INSERT INTO content.loud VALUES (2, 'A')",
      changed: "SELECT 2 AS id, 'A'::content.citext AS name",
    },
    {
      what: "a key with an equality of its own",
      create: `CREATE TABLE content.louder (name content.citext); INSERT INTO content.louder VALUES ('a')`,
      key: "name",
      sql: "SELECT l.name, count(*) AS n FROM content.louder l GROUP BY l.name",
      refusal: "The key name has the type content.citext",
      table: "louder",
      keys: "SELECT c.name FROM changed c",
      happens: "INSERT INTO content.louder VALUES ('A')",
      changed: "SELECT 'A'::content.citext AS name",
    },
    {
      what: "a key whose collation takes different texts for the same",
      create: `CREATE TABLE content.tone (word text COLLATE content.loose); INSERT INTO content.tone VALUES ('a')`,
      key: "word",
      sql: "SELECT t.word, count(*) AS n FROM content.tone t GROUP BY t.word",
      refusal: "The key word has a collation in which different texts are equal",
      table: "tone",
      keys: "SELECT c.word FROM changed c",
      happens: "INSERT INTO content.tone VALUES ('A')",
      changed: "SELECT 'A'::text AS word",
    },
    {
      // Only of the rows that are there can it be asked for.
      what: "a column that is computed when it is read, of a row that is gone",
      since: 180_000,
      create: `CREATE TABLE content.computed (id int, n int, half int GENERATED ALWAYS AS (n / 2) VIRTUAL);
        INSERT INTO content.computed VALUES (1, 1900); INSERT INTO content.film (id) VALUES (950)`,
      key: "id",
      sql: "SELECT f.id, count(*) AS n FROM content.film f JOIN content.computed c ON c.half = f.id GROUP BY f.id",
      refusal: "The way to the key needs half of content.computed, which is computed when it is read",
      table: "computed",
      keys: "SELECT d.half_of_it FROM changed c JOIN content.computed d (id, n, half_of_it) ON d.id = c.id",
      happens: "DELETE FROM content.computed",
      changed: "SELECT 1 AS id, 1900 AS n",
    },
    {
      what: "which text a collation takes for the same as another",
      create: `CREATE TABLE content.word (id int, word text COLLATE content.loose);
        CREATE TABLE content.spelling (word text COLLATE content.loose, n int); INSERT INTO content.word VALUES (1, 'a')`,
      key: "id",
      sql: "SELECT w.id, s.n FROM content.word w LEFT JOIN content.spelling s ON s.word = w.word",
      refusal: "has a collation in which different texts are equal",
      table: "spelling",
      keys: `SELECT w.id FROM changed c JOIN present.word w ON w.word COLLATE "C" = c.word COLLATE "C"`,
      happens: "INSERT INTO content.spelling VALUES ('A', 1)",
      changed: "SELECT 'A'::text AS word, 1 AS n",
    },
    ...REFUSED.filter(({ name }) => name.startsWith("subquery in an ON ")).map(({ name, sql }, number) => ({
      what: name,
      create: `INSERT INTO content.film (id, studio_id) VALUES (${900 + number}, ${900 + number});
        INSERT INTO content.studio VALUES (${900 + number}, ${900 + number}, NULL);
        INSERT INTO content.country VALUES (${900 + number}, NULL);
        INSERT INTO content.rating VALUES (${900 + number}, ${900 + number}, NULL, 1)`,
      key: "id",
      sql,
      refusal: "stands in the ON of an outer join, or of a join on its optional side",
      table: "person",
      // As if there were a studio wherever the subquery matters.
      keys: "SELECT x.id FROM changed c JOIN present.rating x ON x.score = c.country_id",
      happens: `INSERT INTO content.person VALUES (1, ${900 + number}, NULL)`,
      changed: `SELECT 1 AS id, ${900 + number} AS country_id, NULL::text AS name`,
    })),
  ];

  beforeAll(async () => {
    await following.database.query(`CREATE EXTENSION citext SCHEMA content;
      CREATE COLLATION content.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
  });

  it.each(DEMONSTRATIONS)("a change is missed: $what", async (demonstration) => {
    if (!(await isAtLeast(demonstration.since))) return;
    const { create, key, sql, refusal, table, keys, happens, changed } = demonstration;
    const { client } = following;
    await client.query(create);
    const query = { name: "", key: [key], sql };
    const messages = (await following.plan(query)).refusals.map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining(refusal));
    // The other table of a set operation or a join does not change.
    const others = (await following.plan(query, { [`content.${table}`]: { keys } })).refusals;
    const choices = Object.fromEntries(
      others.flatMap(({ table: other }) => (other === null ? [] : [[other, IGNORED]])),
    );
    const plan = await following.plan(query, { ...choices, [`content.${table}`]: { keys } });
    const mart = await createMart(client, query, plan, 0);
    await client.query("BEGIN");
    await client.query(`CREATE TEMP TABLE what_changed ON COMMIT DROP AS ${changed}`);
    await client.query(happens);
    const images: ImagesOf = ({ schema, name }) => ({
      changed: name === table ? "(TABLE what_changed)" : `(SELECT * FROM ${schema}.${name} LIMIT 0)`,
      old: `(SELECT * FROM ${schema}.${name} LIMIT 0)`,
    });
    await bringUpToDate(client, mart, { touched: new Set([table]), newImages: () => ({ images, values: [] }) });
    expect(await differs(client, mart)).toBe(true);
    await client.query("COMMIT");
  });

  it("a row without a key is found by nothing", async () => {
    const { client } = following;
    const [optional] = REFUSED.filter(({ name }) => name === "key from an optional side");
    const { rows: before } = await client.query(`SELECT count(*)::int AS n FROM (${optional?.sql}) q WHERE id IS NULL`);
    await client.query("INSERT INTO content.genre VALUES (99, NULL, 'of no film')");
    const { rows: after } = await client.query(`SELECT count(*)::int AS n FROM (${optional?.sql}) q WHERE id IS NULL`);
    expect(after[0].n).toBe(before[0].n + 1);
  });
});

describe("although no change is recorded, the query has another answer", () => {
  interface Unseen {
    readonly what: string;
    readonly sql: string;
    readonly refusal: string;
    /** By the owner of the source. */
    readonly create?: string;
    readonly happens?: string;
    /** In the session that reads. */
    readonly session?: string;
    /** Why no other answer can be had here. */
    readonly notShown?: string;
  }
  const UNSEEN: readonly Unseen[] = [
    {
      what: "it asks for the time",
      sql: "SELECT f.id, statement_timestamp() AS at FROM content.film f",
      refusal: "The query asks for the time (statement_timestamp())",
    },
    {
      what: "it asks for the time by a text",
      sql: "SELECT f.id, 'now'::text::timestamptz AS at FROM content.film f",
      refusal: "The query asks for the time ('now')",
    },
    {
      what: "it asks who reads it",
      sql: "SELECT f.id, CURRENT_USER AS who FROM content.film f",
      refusal: "The query asks who reads it (CURRENT_USER)",
      session: "RESET ROLE",
    },
    {
      what: "it calls what answers differently",
      sql: "SELECT f.id, random() AS r FROM content.film f",
      refusal: "The query calls random()",
    },
    {
      what: "a time of day is one of summer time, or not",
      create: "CREATE TABLE content.daily (id int, at timetz); INSERT INTO content.daily VALUES (1, '12:00+00')",
      sql: "SELECT d.id, d.at AT TIME ZONE 'Europe/Berlin' AS at FROM content.daily d",
      refusal: "The query calls timezone(), which may answer differently every time.",
      notShown: "It is another one when the clocks have been changed, and the clock of a server goes by itself.",
    },
    {
      what: "it takes a sample",
      create: "CREATE TABLE content.sampled AS SELECT n AS id FROM generate_series(1, 1000) n",
      sql: "SELECT s.id FROM content.sampled s TABLESAMPLE bernoulli (50)",
      refusal: "TABLESAMPLE takes other rows",
    },
    {
      what: "a materialized view is refreshed",
      create: `CREATE TABLE content.later (id int, title text);
        CREATE MATERIALIZED VIEW content.kept AS SELECT id, title FROM content.later`,
      sql: "SELECT k.id, k.title FROM content.kept k",
      refusal: "is a materialized view",
      happens: "INSERT INTO content.later VALUES (1, 'late'); REFRESH MATERIALIZED VIEW content.kept",
    },
    {
      what: "a foreign table changes where it is",
      create: `CREATE TABLE content.elsewhere (id int, title text);
        CREATE FOREIGN TABLE content.far (id int, title text) SERVER loop OPTIONS (schema_name 'content', table_name 'elsewhere')`,
      sql: "SELECT e.id, e.title FROM content.far e",
      refusal: "is, or has, a foreign table",
      happens: "INSERT INTO content.elsewhere VALUES (1, 'there')",
    },
    {
      what: "a sequence goes on",
      create: "CREATE SEQUENCE content.counter",
      sql: "SELECT c.last_value AS id, c.is_called AS title FROM content.counter c",
      refusal: "is a sequence",
      happens: "SELECT nextval('content.counter'), nextval('content.counter')",
    },
    {
      what: "row-level security shows other rows",
      create: `CREATE TABLE content.secret (id int, title text); INSERT INTO content.secret VALUES (1, 'a'), (2, 'b');
        ALTER TABLE content.secret ENABLE ROW LEVEL SECURITY;
        CREATE POLICY of_tenant ON content.secret USING (title = current_setting('app.tenant', true))`,
      sql: "SELECT s.id, s.title FROM content.secret s",
      refusal: "has row-level security",
      session: "SET app.tenant = 'a'",
    },
  ];

  beforeAll(async () => {
    const { hostname, port, username, password, pathname } = new URL(following.database.url);
    await following.database.query(`CREATE ROLE refused_reader;
      GRANT USAGE ON SCHEMA content TO refused_reader; GRANT USAGE, CREATE ON SCHEMA marts TO refused_reader;
      CREATE EXTENSION postgres_fdw;
      CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw
        OPTIONS (host '${hostname}', port '${port}', dbname '${pathname.slice(1)}');
      CREATE USER MAPPING FOR refused_reader SERVER loop OPTIONS (user '${username}', password '${password}')`);
  });
  afterAll(async () => {
    await following.client.query("RESET ROLE; DROP OWNED BY refused_reader; DROP ROLE refused_reader");
  });

  it.each(UNSEEN.map((one, number) => ({ ...one, number })))("$what", async (unseen) => {
    const { sql, refusal, create, happens, session, notShown, number } = unseen;
    const { client, other, database, recorder } = following;
    if (create !== undefined) await database.query(create);
    await database.query(`GRANT SELECT ON ALL TABLES IN SCHEMA content TO refused_reader;
      GRANT SELECT ON ALL SEQUENCES IN SCHEMA content TO refused_reader`);
    const query = { name: "", key: ["id"], sql };
    const plan = await following.plan(query);
    expect(plan.refusals.map(({ message }) => message)).toEqual([expect.stringContaining(refusal)]);
    if (notShown !== undefined) return;
    await client.query("SET ROLE refused_reader");
    try {
      const mart = await createMart(client, query, plan, 100 + number);
      const place = await recorder.now(other);
      if (happens !== undefined) await database.query(happens);
      if (session !== undefined) await client.query(session);
      const { touched } = await recorder.begin(other, place);
      await other.query("COMMIT");
      expect(touched.size).toBe(0);
      expect(await differs(client, mart)).toBe(true);
    } finally {
      await client.query("RESET ROLE");
    }
  });

  it("an unlogged table is emptied by a crash of the server", async () => {
    const server = await startSlotServer();
    const database = await createTestDatabase(server.url, { empty: true });
    await database.query(`${SCHEMA}; CREATE UNLOGGED TABLE content.passing (id int, title text);
      INSERT INTO content.passing VALUES (1, 'a')`);
    const recorder = await byChangeTable(database);
    const connect = async (): Promise<pg.Client> => {
      const client = new pg.Client(database.url);
      // The crash ends it.
      client.on("error", () => undefined);
      await client.connect();
      return client;
    };
    const before = await connect();
    const query = { name: "", key: ["id"], sql: "SELECT p.id, p.title FROM content.passing p" };
    const plan = await planFollow(await readQueryFacts(before, query.sql), query.key, {});
    expect(plan.refusals.map(({ message }) => message)).toEqual([expect.stringContaining("is unlogged")]);
    const mart = await createMart(before, query, plan, 0);
    const place = await recorder.now(before);
    await before.query("CHECKPOINT");
    const { rows } = await before.query("SELECT pg_backend_pid() AS pid");
    process.kill(rows[0].pid, "SIGKILL");
    await until("its sessions are gone", () =>
      before.query("SELECT 1").then(
        () => false,
        () => true,
      ),
    );
    const after = await until("the server has recovered", () => connect().catch(() => undefined));
    const { touched } = await recorder.begin(after, place);
    await after.query("COMMIT");
    expect(touched.size).toBe(0);
    expect(await differs(after, mart)).toBe(true);
    await after.end();
    await server.stop();
  });
});
