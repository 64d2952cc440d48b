import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { planQuery } from "../../src/connectors/postgres/changes/plan-query.ts";
import { statementsToExamine } from "../../src/sql-analysis/examinable.ts";
import type { ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import { auditQuery } from "../../src/sql-guard/guard.ts";
import { type FollowingDatabase, openFollowing } from "./following.ts";
import { REFUSED } from "./refusals.ts";

let following: FollowingDatabase;
beforeAll(async () => {
  following = await openFollowing();
  await following.database.query(`
    CREATE MATERIALIZED VIEW content.kept AS SELECT id, title FROM content.film;
    CREATE TABLE content.secret (film_id int, kind text);
    ALTER TABLE content.secret ENABLE ROW LEVEL SECURITY;
    CREATE UNLOGGED TABLE content.passing (film_id int, kind text);
    CREATE FOREIGN DATA WRAPPER nobody;
    CREATE SERVER elsewhere FOREIGN DATA WRAPPER nobody;
    CREATE FOREIGN TABLE content.foreign_part (film_id int, kind text) SERVER elsewhere;
    CREATE TABLE content.parted (film_id int, kind text) PARTITION BY LIST (kind);
    CREATE TABLE content.parted_a PARTITION OF content.parted FOR VALUES IN ('a');
    CREATE FOREIGN TABLE content.parted_b PARTITION OF content.parted FOR VALUES IN ('b') SERVER elsewhere;
    CREATE TABLE content.priced (code numeric, film_id int, name text);
    CREATE TABLE content.price (code numeric, amount double precision);
    CREATE TABLE content.keyed (id int PRIMARY KEY, name text, "Odd ""name" int);
    CREATE COLLATION content.loose (provider = icu, locale = 'und', deterministic = false);
    CREATE TABLE content.word (word text COLLATE content.loose, n int);
    CREATE TABLE content.spelling (word text COLLATE content.loose, n int);
    CREATE EXTENSION citext SCHEMA content;
    CREATE TABLE content.loud (name content.citext, n int);
    CREATE DOMAIN content.loose_word AS text COLLATE content.loose;
    CREATE SEQUENCE content.counter;
    CREATE TABLE content.odd (id int, small real, large double precision, padded character(3), loose bpchar, passed interval, said text, at timestamptz, daily timetz);
    CREATE TABLE content.odd_too (id int, small double precision, loose bpchar, passed interval);
    CREATE VIEW content.odd_days AS SELECT o.id, o.said::date AS day FROM content.odd o;`);
});
afterAll(() => following.close());

const SAME_PARTITION = '(r1."p0" = r0."country_id" OR (r1."p0" IS NULL AND r0."country_id" IS NULL))';
const IMAGES: ImagesOf = ({ name }) => ({ changed: `(changed ${name})`, old: `(old ${name})` });

async function planOf(sql: string, key: string, tables: Parameters<FollowingDatabase["plan"]>[1] = {}) {
  const plan = await following.plan({ name: "", sql, key: key.split(",") }, tables);
  const statements = Object.fromEntries(
    plan.tables.map(({ name, change }) => [name, change.kind === "keys" ? change.statement(IMAGES) : change.kind]),
  );
  const images = Object.fromEntries(
    plan.tables.map(({ name, imageColumns }) => [name, imageColumns.map((one) => one.name)]),
  );
  return {
    plan,
    statements,
    images,
    refusals: plan.refusals.map(({ table, message }) => `${table ?? ""}: ${message}`),
  };
}

describe("ways", () => {
  it("a column that equals the key stands for it; without one the way goes to the key's own table", async () => {
    const equal = await planOf(
      "SELECT f.id, s.name FROM content.film f JOIN content.rating r ON r.film_id = f.id JOIN content.studio s ON s.id = f.studio_id",
      "id",
    );
    expect(equal.statements).toEqual({
      film: 'SELECT DISTINCT CAST(r0."id" AS integer) AS "id" FROM (changed film) AS r0',
      rating: 'SELECT DISTINCT CAST(r0."film_id" AS integer) AS "id" FROM (changed rating) AS r0',
      studio:
        'SELECT DISTINCT CAST(r1."id" AS integer) AS "id" FROM (changed studio) AS r0, (SELECT "id", "studio_id" FROM "content"."film" UNION ALL SELECT "id", "studio_id" FROM (old film) AS o) AS r1 WHERE r0."id" = r1."studio_id"',
    });
    expect(equal.images).toEqual({ film: ["id", "studio_id"], rating: ["film_id"], studio: ["id"] });
  });

  it("equal values that are not the same bytes do not stand for one another", async () => {
    const numeric = await planOf(
      "SELECT p.code, r.amount FROM content.priced p JOIN content.price r ON r.code = p.code",
      "code",
    );
    expect(numeric.statements["price"]).toContain('"content"."priced"');
    const types = await planOf(
      "SELECT f.id, count(*) AS n FROM content.film f JOIN (SELECT film_id::bigint AS id FROM content.rating) r ON r.id = f.id GROUP BY f.id",
      "id",
    );
    expect(types.statements["rating"]).toContain('"content"."film"');
  });

  it("what a group prints for equal values that are not the same is nobody's key", async () => {
    const sql = (key: string) => `SELECT ${key} AS k, count(*) AS n FROM content.price p GROUP BY p.code`;
    expect((await planOf(sql("p.code"), "k")).refusals).toEqual([]);
    expect((await planOf(sql("p.code::text"), "k")).refusals).toEqual([
      expect.stringContaining("equal without being the same"),
    ]);
  });

  it("a window of JSON_ARRAYAGG counts as one", async () => {
    const { rows } = await following.client.query(
      "SELECT current_setting('server_version_num')::int >= 160000 AS has_it",
    );
    if (rows[0]?.has_it !== true) return;
    const { statements } = await planOf(
      "SELECT s.id, JSON_ARRAYAGG(s.name) OVER (PARTITION BY s.country_id) AS n FROM content.studio s",
      "id",
    );
    expect(statements["studio"]).toContain(SAME_PARTITION);
  });

  it("JSON_ARRAYAGG is an aggregate like any other: there may be no rows that it is made of", async () => {
    const { rows } = await following.client.query(
      "SELECT current_setting('server_version_num')::int >= 160000 AS has_it",
    );
    if (rows[0]?.has_it !== true) return;
    const json =
      "SELECT JSON_ARRAYAGG(r.score)::text, (SELECT count(*) FROM content.flag x WHERE x.film_id = f.id) AS n";
    const { refusals, plan } = await planOf(
      `SELECT p.id, f.id AS film, l.n FROM content.film f CROSS JOIN content.person p CROSS JOIN LATERAL (${json} FROM content.rating r WHERE r.film_id = f.id AND r.person_id = p.id) l`,
      "id,film",
    );
    expect(refusals).toContainEqual(expect.stringContaining("No equality leads from content.flag (x)"));
    expect(plan.warnings).toEqual([expect.stringContaining("JSON_ARRAYAGG() has no ORDER BY")]);
  });

  it("of a series only the number that an equality picks, and all of them where none does", async () => {
    const picked = await planOf(
      "SELECT g.n, count(r.id) AS c FROM generate_series(1, 12) g(n) LEFT JOIN (content.film f JOIN content.rating r ON r.film_id = f.id) ON f.country_id = g.n GROUP BY g.n",
      "n",
    );
    expect(picked.statements["rating"]).toMatch(/r0\."film_id" = r1\."id"/);
    expect(picked.statements["rating"]).toMatch(/r1\."country_id" = r2\."n"|r2\."n" = r1\."country_id"/);
    const all = await planOf("SELECT f.id, g.n FROM content.film f CROSS JOIN generate_series(1, 3) g(n)", "id,n");
    expect(all.statements["film"]).toMatch(
      /FROM \(changed film\) AS r0, LATERAL "generate_series"\(1, 3\) AS r1\("n"\)$/,
    );
  });

  it("every place of a table has a way of its own", async () => {
    const { statements } = await planOf(
      "SELECT f.id, p.title FROM content.film f LEFT JOIN content.film p ON p.id = f.parent_id",
      "id",
    );
    expect(statements["film"]?.split("\nUNION\n")).toEqual([
      'SELECT CAST(r0."id" AS integer) AS "id" FROM (changed film) AS r0',
      'SELECT CAST(r1."id" AS integer) AS "id" FROM (changed film) AS r0, (SELECT "id", "parent_id" FROM "content"."film" UNION ALL SELECT "id", "parent_id" FROM (old film) AS o) AS r1 WHERE r0."id" = r1."parent_id"',
    ]);
  });

  it("null partitions are one partition", async () => {
    const { statements } = await planOf(
      "SELECT s.id, count(*) OVER (PARTITION BY s.country_id) AS n FROM content.studio s",
      "id",
    );
    expect(statements["studio"]).toContain(SAME_PARTITION);
  });

  it.each([
    ["a composite type", "content.pair", ["NULL", "'(,)'", "'(1,)'", "'(1,a)'"]],
    ["arrays", "text[]", ["NULL", "'{}'", "'{NULL}'", "'{NULL,a}'"]],
    ["numbers of which equal ones are printed differently", "numeric", ["NULL", "1", "1.0", "1.00", "'NaN'"]],
  ])("of %s, too, every partition is found, with nulls in it or without", async (_, type, values) => {
    const { client, database } = following;
    await database.query(`DROP TABLE IF EXISTS content.divided; DROP TYPE IF EXISTS content.pair;
      CREATE TYPE content.pair AS (n int, name text); CREATE TABLE content.divided (id int, part ${type})`);
    for (const [id, part] of values.entries()) {
      await database.query(`INSERT INTO content.divided VALUES (${id}, ${part}), (${10 + id}, ${part})`);
    }
    const sql = "SELECT d.id, count(*) OVER (PARTITION BY d.part) AS n FROM content.divided d";
    const { plan } = await planOf(sql, "id");
    const [table] = plan.tables;
    if (table?.change.kind !== "keys") throw new Error("It is refused.");
    for (const id of values.keys()) {
      const changed = `(SELECT * FROM content.divided WHERE id = ${id})`;
      const statement = table.change.statement(() => ({ changed, old: "(SELECT * FROM content.divided LIMIT 0)" }));
      const { rows } = await client.query(
        `SELECT d.id FROM content.divided d JOIN ${changed} c ON d.part IS NOT DISTINCT FROM c.part EXCEPT (${statement})`,
      );
      expect(rows).toEqual([]);
    }
  });

  it("all columns that the query reads are known, also those of whole rows", async () => {
    const { plan } = await planOf(
      "SELECT s.id, to_jsonb(c) AS country, count(*) FILTER (WHERE s.name > 'a') OVER (PARTITION BY s.id) AS n FROM content.studio s JOIN content.country c ON c.id = s.country_id",
      "id",
    );
    expect(plan.tables.map(({ name, readColumns }) => [name, readColumns])).toEqual([
      ["studio", ["id", "country_id", "name"]],
      ["country", ["id", "name"]],
    ]);
  });

  it("through many SELECTs with windows of their own, without trying every combination", async () => {
    const level = (_: unknown, index: number) =>
      `, c${index + 1} AS (SELECT a.film_id, a.score, rank() OVER (PARTITION BY a.film_id ORDER BY a.score) AS k FROM c${index} a)`;
    const sql = `WITH c0 AS (SELECT film_id, score FROM content.rating)${Array.from({ length: 25 }, level).join("")} SELECT score, film_id, k FROM c25`;
    expect((await planOf(sql, "film_id")).statements["rating"]).not.toContain("IS NULL");
    expect((await planOf(sql, "score")).statements["rating"]).toContain("IS NULL");
  });

  it("names that must be quoted are", async () => {
    const { statements } = await planOf('SELECT k."Odd ""name" AS "My key", k.name FROM content.keyed k', "My key");
    expect(statements["keyed"]).toBe(
      'SELECT DISTINCT CAST(r0."Odd ""name" AS integer) AS "My key" FROM (changed keyed) AS r0',
    );
  });
});

describe("a refusal has the place of its table in the query as it is written", () => {
  /** The refused table begins after the arrow. */
  const QUERIES: readonly [string, string][] = [
    [
      "on its line",
      "-- über\nSELECT f.id, x.n FROM content.film f\n  CROSS JOIN (SELECT count(*) AS n FROM →content.rating) x",
    ],
    [
      "beside others, after names that take two bytes",
      'SELECT f.id AS "ключ", f.id, x.n FROM content.film f CROSS JOIN (SELECT count(*) AS n FROM →content.rating r) x',
    ],
    [
      "at the second of its places",
      "SELECT f.id, p.n FROM content.film f CROSS JOIN (SELECT count(*) AS n FROM →content.film p) p",
    ],
    [
      "where both have one name, and PostgreSQL gives it another",
      "SELECT f.id, x.n FROM content.film f CROSS JOIN (SELECT count(*) AS n FROM →content.film f) x",
    ],
    [
      "in a common table expression that has its name",
      "WITH rating AS (SELECT count(*) AS n FROM →content.rating) SELECT f.id, rating.n FROM content.film f CROSS JOIN rating",
    ],
    [
      "although PostgreSQL prints what GROUP BY 2 means",
      "SELECT f.id, (SELECT count(*) FROM →content.rating r) AS n FROM content.film f GROUP BY 1, 2",
    ],
    [
      "also without an alias, quoted",
      'SELECT f.id, x.n FROM content.film f CROSS JOIN (SELECT count(*) AS n FROM →"content"."rating") x',
    ],
    ["which takes a sample", "SELECT f.id FROM →content.film f TABLESAMPLE bernoulli (50)"],
    ["that nobody tells of", "SELECT f.id, k.title FROM content.film f JOIN →content.kept k ON k.id = f.id"],
  ];
  it.each(QUERIES)("%s", async (_, marked) => {
    const offset = marked.indexOf("→");
    const { plan } = await planOf(marked.replace("→", ""), "id");
    const lines = marked.slice(0, offset).split("\n");
    expect(plan.refusals.map(({ place }) => place)).toEqual([
      { line: lines.length, column: [...(lines.at(-1) ?? "")].length + 1 },
    ]);
  });

  it("but not where only a view names it, where another query stands, or where follow.tables is wrong", async () => {
    const inView = await planOf(
      "SELECT f.id, x.n FROM content.film f CROSS JOIN (SELECT sum(votes) AS n FROM content.film_score) x",
      "id",
    );
    const ofQuery = await planOf("SELECT f.id, now() AS at FROM content.film f", "id");
    const declared = await planOf("SELECT f.id FROM content.film f", "id", {
      "content.film": { key_columns: ["nothing"] },
    });
    for (const { plan } of [inView, ofQuery, declared]) {
      expect(plan.refusals.map(({ place }) => place)).toEqual([undefined]);
    }
  });
});

describe("refusals", () => {
  it.each(REFUSED)("$name", async ({ sql, key, refusals: expected }) => {
    const { refusals, plan } = await planOf(sql, key.join(","));
    expect(refusals.length).toBe(expected.length);
    for (const [index, beginning] of expected.entries()) expect(refusals[index]).toContain(beginning);
    for (const { table, message, wayOut } of plan.refusals) {
      const isOfQuery = table === null || message.startsWith("TABLESAMPLE");
      expect(wayOut).toBe(
        isOfQuery
          ? "Write the query otherwise, or use mode full."
          : "Say under follow.tables how its changes find their keys, or on_change: everything.",
      );
      expect(message).not.toContain(wayOut);
    }
  });

  it.each([
    ["kept", "is a materialized view: nobody tells when it is refreshed."],
    ["secret", "has row-level security"],
    ["passing", "is unlogged"],
    ["foreign_part", "is, or has, a foreign table"],
    ["parted", "is, or has, a foreign table"],
    ["counter", "is a sequence: nobody tells when it goes on."],
  ])("%s: nothing tells of its changes, so only ignoring it will do", async (table, why) => {
    const column = { kept: "id", counter: "last_value" }[table] ?? "film_id";
    const sql = `SELECT f.id, count(x.${column}) AS n FROM content.film f LEFT JOIN content.${table} x ON x.${column} = f.id GROUP BY f.id`;
    const name = `content.${table}`;
    const { plan, refusals } = await planOf(sql, "id");
    expect(refusals).toEqual([expect.stringContaining(`${name} ${why}`)]);
    expect(plan.refusals[0]?.wayOut).toBe("Say on_change: ignore under follow.tables if the sweep is enough.");
    expect((await planOf(sql, "id", { [name]: { on_change: "everything" } })).refusals).toHaveLength(1);
    expect((await planOf(sql, "id", { [name]: { on_change: "ignore" } })).refusals).toEqual([]);
  });

  it("expressions that name one another twice, nine times over, are too many places", async () => {
    const chain = (length: number) => {
      const ctes = Array.from(
        { length },
        (_, index) =>
          `, c${index + 1} AS (SELECT a.film_id, a.n + b.n AS n FROM c${index} a JOIN c${index} b ON b.film_id = a.film_id)`,
      );
      return `WITH c0 AS (SELECT film_id, count(*) AS n FROM content.rating GROUP BY film_id)${ctes.join("")} SELECT film_id, n FROM c${length}`;
    };
    expect((await planOf(chain(4), "film_id")).refusals).toEqual([]);
    expect((await planOf(chain(9), "film_id")).refusals).toEqual([
      ": The query uses its views and common table expressions in too many places.",
    ]);
  });

  describe("what would take too long is refused, whichever text is short", () => {
    const list = (length: number, item: (index: number) => string): string[] =>
      Array.from({ length }, (_, index) => item(index));
    const nested = (depth: number, first: string, around: (inner: string, index: number) => string): string =>
      list(depth, String).reduce((inner, _, index) => around(inner, index), first);
    const tables = (length: number): string => list(length, (n) => `content.film f${n}`).join(", ");

    it.each([
      [
        "a sum of a column with itself, again and again",
        nested(
          20,
          "SELECT id, parent_id AS x FROM content.film",
          (inner, n) => `SELECT q${n}.id, q${n}.x + q${n}.x AS x FROM (${inner}) q${n}`,
        ).replace("SELECT q19.id, q19.x + q19.x AS x", "SELECT q19.x + q19.x AS id, q19.id AS other"),
      ],
      [
        "OR between many tables",
        `SELECT f0.id FROM ${tables(150)} WHERE ${list(149, (n) => `(f${n}.parent_id = f${n + 1}.id OR f${n}.id = f${n + 1}.parent_id)`).join(" AND ")}`,
      ],
      [
        "windows and OR on many levels",
        nested(
          15,
          "SELECT id, studio_id, parent_id FROM content.film",
          (inner, n) =>
            `SELECT q${n}.id, q${n}.studio_id, ${list(4, (k) => `sum(q${n}.parent_id) OVER (PARTITION BY q${n}.parent_id + ${k})`).join(" + ")} AS parent_id
               FROM (${inner}) q${n} WHERE ${list(8, () => `(${list(16, (k) => `q${n}.studio_id = q${n}.parent_id + ${k}`).join(" OR ")})`).join(" AND ")}`,
        ),
      ],
      [
        "a large expression in many places",
        `WITH k AS (SELECT id, ${list(1500, (n) => `parent_id + ${n} AS c${n}`).join(", ")} FROM content.film)
         SELECT k0.id FROM ${list(250, (n) => `k k${n}`).join(", ")} WHERE ${list(249, (n) => `k${n}.id = k${n + 1}.id`).join(" AND ")}`,
      ],
    ])("%s", async (_, sql) => {
      expect((await planOf(sql, "id")).refusals).toEqual([
        ": The query has too many tables, conditions and levels at once for the ways to its key to be found.",
      ]);
    });

    it("but not a join of sixty tables", async () => {
      const sql = `SELECT f0.id FROM ${tables(60)} WHERE ${list(59, (n) => `f${n}.studio_id = f${n + 1}.id`).join(" AND ")}`;
      expect((await planOf(sql, "id")).refusals).toEqual([]);
    });
  });

  it.each([
    ["g.code::text AS k", "(SELECT p.code, count(*) AS n FROM content.priced p GROUP BY p.code) g"],
    ["g.code::text AS k", "(SELECT DISTINCT p.code FROM content.priced p) g"],
    ["g.code::text AS k", "(SELECT p.code FROM content.priced p UNION SELECT p.code FROM content.priced p) g"],
    ["g.code::text AS k", "(SELECT p.code FROM content.priced p EXCEPT SELECT p.code FROM content.priced p) g"],
    ["md5(g.k::text) AS k", "(SELECT p.name::numeric AS k FROM content.priced p GROUP BY p.name::numeric) g"],
    ["g.code::text AS k", "(SELECT code FROM content.priced FULL JOIN content.priced o USING (code)) g"],
    ["g.name::numeric::text AS k", "content.priced g GROUP BY g.name::numeric"],
    ["f.id AS k", "content.film f JOIN (SELECT DISTINCT p.code FROM content.priced p) g ON g.code::text = f.title"],
    ["g.code::text AS k", "(SELECT DISTINCT p.code, rank() OVER (PARTITION BY p.name) AS n FROM content.priced p) g"],
    [
      "g.code::text AS k",
      "(SELECT p.code, rank() OVER (PARTITION BY p.name) AS n FROM content.priced p UNION SELECT p.code, rank() OVER (PARTITION BY p.name) FROM content.priced p) g",
    ],
    [
      "p.film_id AS k, rank() OVER (PARTITION BY p.code::text ORDER BY count(*)) AS n",
      "content.priced p GROUP BY p.code, p.film_id",
    ],
    ["DISTINCT ON (p.code::text) p.film_id AS k, count(*) AS n", "content.priced p GROUP BY p.code, p.film_id"],
  ])("what is computed from one of several equal values: %s FROM %s", async (output, from) => {
    const { refusals } = await planOf(`SELECT ${output} FROM ${from}`, "k");
    expect(refusals).toEqual([expect.stringContaining("values that are equal without being the same")]);
  });

  it.each([
    ["g.code AS k", "(SELECT p.code, count(*) AS n FROM content.priced p GROUP BY p.code) g"],
    ["upper(g.name) AS k", "(SELECT p.name, count(*) AS n FROM content.priced p GROUP BY p.name) g"],
    ["g.k + 1 AS k", "(SELECT p.name::int AS k, count(*) AS n FROM content.priced p GROUP BY p.name::int) g"],
    ["g.code::text AS k", "(SELECT p.code, count(*) OVER (PARTITION BY p.code) AS n FROM content.priced p) g"],
  ])("but not what is the same, or only compared: %s FROM %s", async (output, from) => {
    expect((await planOf(`SELECT ${output} FROM ${from}`, "k")).refusals).toEqual([]);
  });

  it.each([
    ["u.v / 2 AS k", "(SELECT f.id AS v FROM content.film f UNION ALL SELECT p.code FROM content.priced p) u"],
    ["u.v AS k", "(SELECT f.id AS v FROM content.film f UNION ALL SELECT p.code FROM content.priced p) u"],
    [
      "u.v || '-' AS k",
      "(SELECT upper(f.title) AS v FROM content.film f UNION ALL SELECT p.name FROM content.priced p) u",
    ],
  ])("a column of a set operation of different types: %s FROM %s", async (output, from) => {
    const { refusals } = await planOf(`SELECT ${output} FROM ${from}`, "k");
    expect(refusals.length).toBeGreaterThan(0);
    for (const refusal of refusals) expect(refusal).toContain("SELECTs have different types there");
  });

  it("IN over a set operation of different types", async () => {
    const sql = (one: string, other: string) =>
      `SELECT f.id FROM content.film f WHERE f.title IN (SELECT ${one} FROM content.odd o UNION ALL SELECT ${other} FROM content.odd o)`;
    expect((await planOf(sql("o.said::varchar", "lower(o.said)"), "id")).refusals).toEqual([]);
    // Of type bpchar, as which 'a ' is equal to 'a'.
    expect((await planOf(sql("o.loose", "o.said::varchar"), "id")).refusals).toEqual([
      expect.stringContaining("SELECTs have different types there"),
    ]);
  });

  it.each(["loose", "passed"])("equal values of %s need not be the same, whatever the catalogue says", async (name) => {
    const sql = `SELECT g.${name}::text AS k, g.n FROM (SELECT o.${name}, count(*) AS n FROM content.odd o GROUP BY o.${name}) g`;
    expect((await planOf(sql, "k")).refusals).toEqual([expect.stringContaining("equal without being the same")]);
    const joined = `SELECT o.${name} AS k, t.id FROM content.odd o JOIN content.odd_too t ON t.${name} = o.${name}`;
    expect((await planOf(joined, "k")).statements["odd_too"]).toContain('"content"."odd"');
    const padded = "SELECT g.padded::text AS k FROM (SELECT o.padded FROM content.odd o GROUP BY o.padded) g";
    expect((await planOf(padded, "k")).refusals).toEqual([]);
  });

  it.each(["content.odd o LEFT JOIN content.odd_too t", "content.odd_too t RIGHT JOIN content.odd o"])(
    "what is computed from a column that %s USING converts",
    async (join) => {
      const from = `FROM ${join} USING (small)`;
      expect((await planOf(`SELECT small AS k, t.id ${from}`, "k")).refusals).toEqual([]);
      const { refusals } = await planOf(`SELECT small::text AS k, t.id ${from}`, "k");
      expect(refusals.length).toBe(2);
      for (const one of refusals) expect(one).toContain("The key k is computed in a way that cannot be followed.");
      expect((await planOf(`SELECT id::text AS k FROM ${join} USING (id)`, "k")).refusals).toEqual([]);
    },
  );

  it("what USING makes of types that the query does not say leads on where nothing is converted to a type that loses", async () => {
    const sql = (one: string, other: string) =>
      `SELECT k.id, count(*) AS n FROM (SELECT ${one} AS x FROM content.odd o) a LEFT JOIN (SELECT ${other} AS x FROM content.odd_too t) b USING (x) JOIN content.odd k ON k.id = x GROUP BY k.id`;
    expect((await planOf(sql("abs(o.id)", "abs(t.id)"), "id")).refusals).toEqual([]);
    expect((await planOf(sql("abs(o.id)", "abs(t.id)::bigint"), "id")).refusals).toEqual([]);
    const { refusals } = await planOf(sql("abs(o.id)", "abs(t.small)"), "id");
    expect(refusals).toContainEqual(expect.stringContaining("content.odd: A column of USING"));
    // Without an index on an expression nothing would be found by it.
    const wide = await planOf(
      "SELECT k.name, count(*) AS n FROM content.rating r LEFT JOIN (SELECT g.id::bigint AS film_id FROM content.genre g) g USING (film_id) JOIN content.studio k ON k.id = film_id GROUP BY k.name",
      "name",
    );
    expect(wide.refusals).toEqual([]);
    expect(wide.statements["rating"]).toContain('r1."id" = r0."film_id"');
  });

  it("what is cast to a type that is compared in a way of its own leads nowhere", async () => {
    const sql = (type: string) => `SELECT o.id, count(*) OVER (PARTITION BY o.said::${type}) AS n FROM content.odd o`;
    expect((await planOf(sql("text"), "id")).refusals).toEqual([]);
    for (const type of ["content.loose_word", "content.loose_word[]"]) {
      expect((await planOf(sql(type), "id")).refusals).toEqual([expect.stringContaining("The window of n goes by")]);
    }
    const join = `SELECT o.id FROM content.odd o JOIN content.film f ON f.title::content.loose_word = o.said::content.loose_word`;
    expect((await planOf(join, "id")).refusals).toEqual([
      expect.stringContaining("No equality leads from content.film"),
    ]);
  });

  it("a time of day in a zone that has summer time: which day it is decides", async () => {
    const zoned = (value: string) =>
      planOf(`SELECT o.id, ${value} AT TIME ZONE 'Europe/Berlin' AS v FROM content.odd o`, "id");
    expect((await zoned("o.daily")).refusals).toEqual([
      ": The query calls timezone(), which may answer differently every time.",
    ]);
    expect((await zoned("o.at")).refusals).toEqual([]);
  });

  it("an array of arrays, of which ANY compares what is in them", async () => {
    const sql = (array: string) => `SELECT f.id FROM content.film f JOIN content.genre g ON f.id = ANY (${array})`;
    expect((await planOf(sql("ARRAY[g.id, g.parent_id]"), "id")).refusals).toEqual([]);
    const refused = [expect.stringContaining("No equality leads from content.genre (g)")];
    const nested = sql("ARRAY[ARRAY[g.id, g.parent_id], ARRAY[g.parent_id, g.id]]");
    expect((await planOf(nested, "id")).refusals).toEqual(refused);
    const columns = "SELECT f.id FROM content.film f JOIN content.film g ON f.title = ANY (ARRAY[g.tags, g.tags])";
    expect((await planOf(columns, "id")).refusals).toEqual([
      expect.stringContaining("No equality leads from content.film (g)"),
    ]);
  });

  it("columns that a query on the way has each, but not together: nothing joins the tables that they are of", async () => {
    const sql = (output: string) =>
      `SELECT t.title AS k, count(*) AS n FROM (SELECT f.title, x.id FROM content.film f JOIN (SELECT c.id, ${output} AS other FROM content.country c CROSS JOIN content.genre g) x ON x.id = f.country_id AND x.other = f.parent_id) t JOIN content.rating r ON r.film_id = t.id GROUP BY t.title`;
    const { refusals } = await planOf(sql("g.id"), "k");
    expect(refusals).toContainEqual(expect.stringContaining("No equality leads from content.rating (r)"));
    expect((await planOf(sql("c.id + 1"), "k")).statements["rating"]).toContain('"content"."country"');
  });

  it("a text of the query that is a time only when it runs", async () => {
    const { refusals } = await planOf("SELECT o.id, ('now'::text)::timestamptz AS v FROM content.odd o", "id");
    expect(refusals).toEqual([expect.stringContaining("The query asks for the time ('now')")]);
  });

  it.each([
    "o.at::date = ANY ('{today,yesterday}'::date[])",
    "o.at::date = ANY ('{tomorrow}')",
    "o.at::date <@ '[today,)'::daterange",
    "o.at >= '00:00 today'::timestamptz",
    "o.at >= '00:00yesterday'",
    "ROW(o.at) < ROW('TODAY')",
    `o.at::date = ANY ('{today}') AND o.said <> '{"a":"today"}'::jsonb::text`,
    "'{today}'::text[]::date[] = '{}'",
  ])("a time that is only a part of a text: %s", async (condition) => {
    const { refusals } = await planOf(`SELECT o.id FROM content.odd o WHERE ${condition}`, "id");
    expect(refusals.length).toBeGreaterThan(0);
    for (const refusal of refusals) expect(refusal).toContain(": The query asks for the time ('");
  });

  it.each([
    "o.said = 'what is new today'",
    "o.said LIKE '%now%' OR o.said ~ '^(today|now)$'",
    `'{"day":"today","at":["now"]}'::jsonb ? o.said`,
    "o.said = ANY ('{ today, now }'::text[])",
    "to_tsvector('simple', o.said) @@ 'now&later'::tsquery",
    "o.said IN ('known', 'nowhere', 'todays')",
    "o.said::date > '2020-01-01' AND o.said <> 'released today'",
  ])("but not a text that is nothing but itself: %s", async (condition) => {
    expect((await planOf(`SELECT o.id FROM content.odd o WHERE ${condition}`, "id")).refusals).toEqual([]);
  });

  it.each([
    ["o.said::date", "date"],
    ["ARRAY[o.said]::date[]", "date"],
    ["o.said::date[]", "date[]"],
    ["o.said::tstzrange", "tstzrange"],
    ["(SELECT d.day FROM content.odd_days d WHERE d.id = o.id)", "date"],
  ])("%s may be a time that depends on when it is asked for", async (value, type) => {
    const {
      refusals,
      plan: { warnings },
    } = await planOf(`SELECT o.id, ${value} AS v FROM content.odd o`, "id");
    const warning = expect.stringContaining(`The query casts texts to ${type}: one that says 'today'`);
    expect({ refusals, warnings }).toEqual({ refusals: [], warnings: [warning] });
  });

  it.each(["o.at::date", "to_date(o.said, 'YYYY-MM-DD')", "'2020-01-01'::date", "o.at::text", "o.said::interval"])(
    "%s does not",
    async (value) => {
      const {
        refusals,
        plan: { warnings },
      } = await planOf(`SELECT o.id, ${value} AS v FROM content.odd o`, "id");
      expect({ refusals, warnings }).toEqual({ refusals: [], warnings: [] });
    },
  );

  it("a set operation of different types on the way", async () => {
    const sql = (code: string) =>
      `SELECT e.id, r.amount FROM (SELECT f.country_id AS v, f.id FROM content.film f EXCEPT SELECT ${code}, p.film_id FROM content.priced p) e LEFT JOIN content.price r ON r.code = e.v / 2`;
    expect((await planOf(sql("p.film_id"), "id")).refusals).toEqual([]);
    expect((await planOf(sql("p.code"), "id")).refusals).toEqual([
      expect.stringContaining("content.price: No equality leads from content.price"),
    ]);
  });

  it("a column that is computed when it is read is in no record", async () => {
    const { rows } = await following.client.query(
      "SELECT current_setting('server_version_num')::int >= 180000 AS has_it",
    );
    if (rows[0]?.has_it !== true) return;
    await following.client.query(
      "CREATE TABLE content.computed (id int, n int, half int GENERATED ALWAYS AS (n / 2) VIRTUAL, name text)",
    );
    const way = await planOf(
      "SELECT f.id, count(*) AS n FROM content.film f JOIN content.computed c ON c.half = f.id GROUP BY f.id",
      "id",
    );
    expect(way.refusals).toEqual([
      expect.stringContaining("needs half of content.computed, which is computed when it is read"),
    ]);
    expect(way.plan.refusals[0]?.wayOut).toMatch(/^Have the owner of the source make it a stored column/);
    const everything = await planOf(
      "SELECT f.id, count(*) AS n FROM content.film f JOIN content.computed c ON c.half = f.id GROUP BY f.id",
      "id",
      { "content.computed": { on_change: "everything" } },
    );
    expect(everything.refusals).toEqual([]);
    const value = await planOf("SELECT c.id, c.half FROM content.computed c", "id");
    expect(value.refusals).toEqual([]);
    expect(value.plan.tables[0]?.readColumns).toEqual(["id", "n", "name"]);
  });

  it("a key with an equality of its own", async () => {
    expect((await planOf("SELECT l.name, sum(l.n) AS n FROM content.loud l GROUP BY l.name", "name")).refusals).toEqual(
      [": The key name has the type content.citext, whose values are compared in a way of its own."],
    );
  });

  it("a way by an equality of its own, of a type or of a collation", async () => {
    const ofType = "The way to the key compares name, of the type content.citext";
    const window = "SELECT l.n, count(*) OVER (PARTITION BY l.name) AS c FROM content.loud l";
    expect((await planOf(window, "n")).refusals).toEqual([expect.stringContaining(ofType)]);
    const inner = window.replace("content.loud l", "(SELECT x.n, x.name FROM content.loud x) l");
    expect((await planOf(inner, "n")).refusals).toEqual([expect.stringContaining(ofType)]);
    const words = "FROM content.word w JOIN content.spelling s ON s.word = w.word";
    const ofCollation = "The way to the key compares word, which has a collation in which different texts are equal.";
    expect((await planOf(`SELECT w.n, s.n AS m ${words}`, "n")).refusals).toEqual([
      expect.stringContaining(ofCollation),
    ]);
    expect((await planOf(`SELECT w.word, w.n FROM content.word w`, "word")).refusals).toEqual([
      ": The key word has a collation in which different texts are equal: which of them the mart has cannot be told.",
    ]);
  });

  it("what is ignored because nobody sees it is read as it is", async () => {
    const sql =
      "SELECT f.id, count(*) AS n FROM content.film f JOIN content.kept k ON k.id = f.parent_id JOIN content.flag x ON x.kind = k.title GROUP BY f.id";
    const { statements, images } = await planOf(sql, "id", { "content.kept": { on_change: "ignore" } });
    expect(statements["flag"]).toContain('FROM "content"."kept") AS r1');
    expect(images["kept"]).toEqual([]);
  });
});

describe("follow.tables", () => {
  const sql = "SELECT f.id, (SELECT count(*) FROM content.rating r) AS n FROM content.film f";

  it("takes columns, everything, or a query", async () => {
    const columns = await planOf(sql, "id", { "content.rating": { key_columns: ["film_id"] } });
    expect(columns.statements["rating"]).toBe(
      'SELECT DISTINCT CAST(c."film_id" AS integer) AS "id" FROM (changed rating) AS c',
    );
    expect(columns.images["rating"]).toEqual(["film_id"]);
    const everything = await planOf(sql, "id", { "content.rating": { on_change: "everything" } });
    expect(everything.statements["rating"]).toBe("everything");
    const keys = "SELECT f.id FROM changed c JOIN present.film f ON f.studio_id = c.score -- as a person writes it";
    const query = await planOf(sql, "id", { "content.rating": { keys } });
    expect(query.refusals).toEqual([]);
    expect(query.statements["rating"]).toBe(
      'SELECT DISTINCT CAST(k."id" AS integer) AS "id" FROM (\n' +
        'SELECT f.id FROM (SELECT "id", "score" FROM (changed rating) AS c) c JOIN (SELECT "id", "studio_id" FROM "content"."film" UNION ALL SELECT "id", "studio_id" FROM (old film) AS o) f ON f.studio_id = c.score -- as a person writes it\n' +
        ') AS k ("id")',
    );
    expect(query.images).toEqual({ film: ["id", "studio_id"], rating: ["id", "score"] });
  });

  it.each([
    ["SELECT 1; SELECT 2", "it is not one SELECT"],
    ["DELETE FROM content.film", "it is not one SELECT"],
    ["SELECT nonsense FROM", "PostgreSQL cannot read the query"],
    ["SELECT * FROM changed", "are not written one by one"],
    ["SELECT id, film_id FROM changed", "these are 2"],
    ["SELECT id FROM content.film", "it does not read `changed`"],
    ["SELECT f.id FROM changed c JOIN present.nothing f ON true", "the query reads no table nothing"],
    ["SELECT f.id FROM changed c JOIN film f ON true", "film has no schema"],
  ])("refuses %s", async (keys, why) => {
    const { refusals } = await planOf(sql, "id", { "content.rating": { keys } });
    expect(refusals).toEqual([expect.stringContaining(why)]);
  });

  it("can be examined like any query, with the tables that it reads and the functions that it calls", async () => {
    const rules = { allowedSchemas: ["content"] };
    const examine = async (keys: string) => {
      const { plan } = await planOf(sql, "id", { "content.rating": { keys } });
      for (const { statement } of statementsToExamine(plan)) await auditQuery(following.client, statement, rules);
    };
    await examine(
      "SELECT f.id FROM changed c JOIN present.film f ON f.studio_id = c.score JOIN content.flag x ON x.film_id = f.id",
    );
    await expect(examine("SELECT c.id FROM changed c JOIN marts.anything x ON true")).rejects.toThrow(
      "outside the allowed schemas",
    );
    await expect(examine("SELECT c.id FROM changed c WHERE pg_sleep(1) IS NOT NULL")).rejects.toThrow("pg_sleep");
  });

  it("is examined by whoever plans, and so is the query when its source was altered", async () => {
    const makePlan = planQuery({ allowedSchemas: ["content"] });
    const plan = (query: string, keys: string) =>
      makePlan(following.client, { query, columns: [], key: ["id"], tables: { "content.rating": { keys } } });
    await following.client.query("CREATE VIEW content.rated AS SELECT r.id, r.film_id FROM content.rating r");
    const view = "SELECT r.id FROM content.rated r";
    await plan(view, "SELECT id FROM changed");
    for (const [keys, why] of [
      ["SELECT x.n FROM changed c JOIN marts.changes x (n) ON true", "marts"],
      ["SELECT c.id FROM changed c WHERE pg_sleep(1) IS NOT NULL", "pg_sleep"],
      ["SELECT c.id FROM changed c WHERE set_config('role', 'x', true) <> ''", "set_config"],
      ["SELECT c.id FROM changed c WHERE query_to_xml('SELECT 1', true, true, '') IS NULL", "query_to_xml"],
    ] as const) {
      const table = "content.rating";
      expect((await plan(view, keys)).refusals, keys).toMatchObject([{ table, message: expect.stringContaining(why) }]);
    }
    await following.client.query(
      "CREATE OR REPLACE VIEW content.rated AS SELECT r.id, r.film_id FROM content.rating r WHERE pg_sleep(1) IS NOT NULL",
    );
    await expect(plan(view, "SELECT id FROM changed")).rejects.toThrow("pg_sleep");
    await following.client.query("DROP VIEW content.rated");
  });

  it("names what is not there", async () => {
    expect((await planOf(sql, "id", { "content.rating": { key_columns: ["nothing"] } })).refusals).toEqual([
      "content.rating: content.rating has no column nothing.",
    ]);
    expect((await planOf(sql, "id", { "content.rating": { key_columns: ["id", "score"] } })).refusals).toEqual([
      "content.rating: `key_columns` of content.rating are to be 1, one for each column of the key.",
    ]);
    expect(
      (await planOf("SELECT f.id FROM content.film f", "id", { "content.flag": { on_change: "ignore" } })).refusals,
    ).toEqual([
      "content.flag: The query does not read the table content.flag of `follow.tables`. It reads content.film.",
    ]);
  });

  it("says what a query reads that reads no table", async () => {
    expect((await planOf("SELECT 1 AS id", "id", { "content.flag": { on_change: "ignore" } })).refusals).toEqual([
      "content.flag: The query does not read the table content.flag of `follow.tables`. It reads none.",
    ]);
  });

  it("takes names as SQL quotes them", async () => {
    await following.database.query(`CREATE SCHEMA "Odd Name"; CREATE TABLE "Odd Name"."Tab.le ""x""" (id int)`);
    const odd = `SELECT f.id, (SELECT count(*) FROM "Odd Name"."Tab.le ""x""") AS n FROM content.film f`;
    const choice = { on_change: "everything" } as const;
    const { statements } = await planOf(odd, "id", { '"Odd Name"."Tab.le ""x"""': choice });
    expect(statements['Tab.le "x"']).toBe("everything");
    expect((await planOf(sql, "id", { 'content."rating"': choice })).statements["rating"]).toBe("everything");
    expect((await planOf(sql, "id", { '"content"."rating"': choice, "content.rating": choice })).refusals).toEqual([
      'content.rating: `follow.tables` names one table twice, as "content"."rating" and as content.rating.',
    ]);
    expect((await planOf(sql, "id", { '"Content".rating': choice, "content.rating": choice })).refusals).toEqual([
      '"Content".rating: The query does not read the table "Content".rating of `follow.tables`. It reads content.film, content.rating.',
    ]);
  });

  it("the old rows of a table are not asked for when any change of it means everything", async () => {
    const chain = "SELECT f.id, s.name FROM content.film f JOIN content.studio s ON s.id = f.studio_id";
    const { statements, images } = await planOf(chain, "id", { "content.film": { on_change: "everything" } });
    expect(statements["studio"]).toContain('FROM "content"."film") AS r1');
    expect(images).toEqual({ film: [], studio: ["id"] });
  });
});

describe("restricted to keys", () => {
  const inner = (sql: string, key: string, keys: string[][]) =>
    planOf(sql, key).then(({ plan }) => plan.restrictedTo(keys));

  it("inside wherever a table has the key itself, outside in any case", async () => {
    const text = await inner(
      "SELECT f.id, r.n FROM content.film f LEFT JOIN (SELECT film_id, count(*) AS n FROM content.rating GROUP BY film_id) r ON r.film_id = f.id",
      "id",
      [["1"], ["2"]],
    );
    const keys = `CAST('{"1","2"}' AS integer[])`;
    expect(text).toContain(`(SELECT "id" FROM content.film WHERE "id" = ANY (${keys})) f`);
    expect(text).toContain(`(SELECT "film_id" FROM content.rating WHERE "film_id" = ANY (${keys})) AS "rating"`);
    expect(text).toMatch(/AS q WHERE q\."id" = ANY \(CAST\('\{"1","2"\}' AS integer\[\]\)\)$/);
  });

  it("only with the columns that the query reads: those of others its reader may not see", async () => {
    await following.database.query(`
      CREATE TABLE content.closed (id int, name text, secret text);
      CREATE VIEW content.half_open AS SELECT id, name, secret FROM content.closed;
      INSERT INTO content.closed VALUES (1, 'a', 's'), (2, 'b', 's');
      CREATE ROLE follow_half_reader;
      GRANT USAGE ON SCHEMA content TO follow_half_reader;
      GRANT SELECT (id, name) ON content.closed, content.half_open TO follow_half_reader`);
    const queries = [
      "SELECT c.id, c.name FROM content.closed c",
      "SELECT c.id, c.name FROM content.half_open c",
      "SELECT c.own AS id, c.label AS name FROM content.closed c(own, label)",
      'SELECT c.own AS id, c.label AS name FROM content.half_open AS c(own, label, "third one")',
    ];
    const texts: string[] = [];
    for (const sql of queries) texts.push(await inner(sql, "id", [["1"]]));
    await following.client.query("SET ROLE follow_half_reader");
    try {
      for (const text of texts) {
        expect(text).toMatch(/FROM content\.(closed|half_open) WHERE "id" = ANY/);
        expect((await following.client.query(text)).rows).toEqual([{ id: 1, name: "a" }]);
      }
      await expect(following.client.query("SELECT * FROM content.closed")).rejects.toThrow("permission denied");
    } finally {
      await following.client.query("RESET ROLE; DROP OWNED BY follow_half_reader; DROP ROLE follow_half_reader");
    }
  });

  it("not by what is computed: it may fail for a row that the query leaves out", async () => {
    await following.database.query(`
      CREATE TABLE content.mixed (said text, n int);
      INSERT INTO content.mixed VALUES ('1', 1), ('one', 0)`);
    const sql =
      "SELECT m.said::int AS k, count(*) AS c FROM content.mixed m WHERE m.said ~ '^[0-9]+$' GROUP BY m.said::int";
    const text = await inner(sql, "k", [["1"]]);
    expect(text).not.toContain("FROM content.mixed WHERE");
    expect((await following.client.query(text)).rows).toEqual([{ k: 1, c: "1" }]);
  });

  it("not where the primary key allows more columns than GROUP BY has", async () => {
    const text = await inner(
      "SELECT k.id, k.name, count(r.id) AS n FROM content.keyed k LEFT JOIN content.rating r ON r.film_id = k.id GROUP BY k.id",
      "id",
      [["1"]],
    );
    expect(text).not.toContain("FROM content.keyed WHERE");
    expect(text).toContain("FROM content.rating WHERE");
    await following.client.query(text);
  });

  it("not in a text that is used in two ways, nor around whole rows", async () => {
    const twice = await inner(
      "WITH r AS (SELECT film_id, person_id FROM content.rating) SELECT f.id, a.film_id, b.person_id FROM content.film f LEFT JOIN r a ON a.film_id = f.id LEFT JOIN r b ON b.person_id = f.id",
      "id",
      [["1"]],
    );
    expect(twice).not.toContain("FROM content.rating WHERE");
    const rows = await inner("SELECT f.id, f.*::text AS row FROM content.film f", "id", [["1"]]);
    expect(rows).not.toContain("FROM content.film WHERE");
  });

  it("keys of several columns, hostile texts, and no keys at all", async () => {
    const sql =
      "SELECT r.film_id, p.name, count(*) AS n FROM content.role r JOIN content.person p ON p.id = r.person_id GROUP BY r.film_id, p.name";
    const text = await inner(sql, "film_id,name", [
      ["1", `a'"\\{},\n`],
      ["2", "NULL"],
    ]);
    expect(text).toContain(`WHERE "film_id" = ANY (CAST('{"1","2"}' AS integer[]))`);
    await following.client.query("INSERT INTO content.person VALUES (99, 1, $1)", [`a'"\\{},\n`]);
    await following.client.query("INSERT INTO content.role VALUES (1, 99, 'x')");
    expect((await following.client.query(text)).rows).toEqual([{ film_id: 1, name: `a'"\\{},\n`, n: "1" }]);
    const nothing = await following.client.query(await inner(sql, "film_id,name", []));
    expect(nothing.rows).toEqual([]);
    expect(nothing.fields.map(({ name }) => name)).toEqual(["film_id", "name", "n"]);
  });

  it("a key that is an array", async () => {
    const text = await inner("SELECT f.tags, count(*) AS n FROM content.film f GROUP BY f.tags", "tags", [
      ["{a,b}"],
      ["{}"],
    ]);
    await following.client.query(text);
  });
});

describe("warnings", () => {
  it.each([
    [
      "SELECT r.film_id, array_agg(r.score) AS s FROM content.rating r GROUP BY r.film_id",
      "film_id",
      ["array_agg() has no ORDER BY"],
    ],
    [
      "SELECT r.film_id, array_agg(r.score ORDER BY r.score) AS s FROM content.rating r GROUP BY r.film_id",
      "film_id",
      [],
    ],
    [
      "SELECT p.code, sum(p.amount) AS s FROM content.price p GROUP BY p.code",
      "code",
      ["Values of code (numeric) can be equal without being the same text", "sum() adds up floating-point numbers"],
    ],
    [
      "SELECT DISTINCT ON (r.film_id) r.film_id, r.score FROM content.rating r ORDER BY r.film_id",
      "film_id",
      ["DISTINCT ON, LIMIT, row_number(), lag() and the like, and frames of ROWS choose by chance"],
    ],
    [
      "SELECT r.film_id, row_number() OVER (PARTITION BY r.film_id) AS n FROM content.rating r",
      "film_id",
      ["DISTINCT ON, LIMIT"],
    ],
    [
      "SELECT r.film_id, lag(r.score) OVER (PARTITION BY r.film_id ORDER BY r.person_id) AS n FROM content.rating r",
      "film_id",
      ["DISTINCT ON, LIMIT"],
    ],
    [
      "SELECT r.film_id, sum(r.score) OVER w AS n FROM content.rating r WINDOW w AS (PARTITION BY r.film_id ORDER BY r.person_id ROWS UNBOUNDED PRECEDING)",
      "film_id",
      ["DISTINCT ON, LIMIT"],
    ],
    [
      "SELECT r.film_id, sum(r.score) OVER (PARTITION BY r.film_id ORDER BY r.id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n, rank() OVER (PARTITION BY r.film_id ORDER BY r.id) AS place FROM content.rating r",
      "film_id",
      [],
    ],
  ])("%s", async (sql, key, expected) => {
    const { plan } = await planOf(sql, key);
    expect(plan.warnings).toEqual(expected.map((beginning) => expect.stringContaining(beginning)));
  });
});
