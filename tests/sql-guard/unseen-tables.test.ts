import { afterAll, beforeAll, expect, it } from "vitest";
import { unseenTables } from "../../src/sql-guard/unseen-tables.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** Which tables an incremental load cannot follow, told from its query. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(`
    CREATE TABLE content.film (id int, title text, language_id int, modified timestamptz);
    CREATE TABLE content.language (id int, name text, modified timestamptz);
    CREATE TABLE content.genre (film_id int, name text, changed timestamptz);
    CREATE VIEW content.named AS
      SELECT f.id, f.title, l.name, f.modified FROM content.film f JOIN content.language l ON l.id = f.language_id;
    CREATE MATERIALIZED VIEW content.kept AS SELECT * FROM content.named`);
});
afterAll(() => bench.close());

const FILM = "content.film";
const LANGUAGE = "content.language";
const GENRE = "content.genre";

const queries: [string, string, string[]][] = [
  ["one table", "SELECT id, modified FROM content.film", []],
  ["a star", "SELECT * FROM content.film", []],
  [
    "a join",
    "SELECT f.id, l.name, f.modified FROM content.film f JOIN content.language l ON l.id = f.language_id",
    [LANGUAGE],
  ],
  [
    "the other side of a join",
    "SELECT f.id, l.name, l.modified FROM content.film f LEFT JOIN content.language l ON l.id = f.language_id",
    [FILM],
  ],
  [
    "a column without its table's name",
    "SELECT film.id, changed AS modified FROM content.film JOIN content.genre ON film_id = id",
    [FILM],
  ],
  [
    "the greatest of several",
    "SELECT f.id, greatest(f.modified, l.modified) AS modified FROM content.film f, content.language l, content.genre g",
    [GENRE],
  ],
  [
    "an aggregate",
    "SELECT f.id, max(g.changed) AS modified FROM content.film f JOIN content.genre g ON g.film_id = f.id GROUP BY f.id",
    [FILM],
  ],
  [
    "subqueries in columns and conditions",
    `SELECT f.id, f.modified, (SELECT count(*) FROM content.genre g WHERE g.film_id = f.id) AS n FROM content.film f
      WHERE EXISTS (SELECT FROM content.language l WHERE l.id = f.language_id)`,
    [GENRE, LANGUAGE],
  ],
  [
    "a subquery in the key",
    `SELECT f.id, greatest(f.modified, (SELECT max(g.changed) FROM content.genre g WHERE g.film_id = f.id)) AS modified
       FROM content.film f JOIN content.language l ON l.id = f.language_id`,
    [LANGUAGE],
  ],
  [
    "a subquery in FROM, with names of its own",
    `SELECT s.a AS id, s.b AS modified FROM (SELECT f.id, f.modified FROM content.film f, content.genre g) AS s (a, b)`,
    [GENRE],
  ],
  [
    "CTEs, one of them twice",
    `WITH f AS (SELECT id, modified FROM content.film), l AS (SELECT * FROM content.language)
     SELECT f.id, f.modified FROM f JOIN l ON l.id = f.id JOIN l AS other ON other.id = f.id`,
    [LANGUAGE],
  ],
  [
    "a CTE that refers to itself",
    `WITH RECURSIVE t (id, modified) AS (SELECT id, modified FROM content.film UNION ALL
       SELECT t.id, t.modified FROM t JOIN content.language l ON l.id = t.id) SELECT id, modified FROM t`,
    [LANGUAGE],
  ],
  [
    "LATERAL",
    `SELECT f.id, x.modified FROM content.film f, content.language l,
       LATERAL (SELECT greatest(f.modified, max(g.changed)) AS modified FROM content.genre g WHERE g.film_id = f.id) x`,
    [LANGUAGE],
  ],
  [
    "a union, each part for itself",
    `SELECT f.id, f.modified FROM content.film f UNION ALL
     SELECT g.film_id, g.changed FROM content.genre g JOIN content.language l ON true`,
    [LANGUAGE],
  ],
  ["a view", "SELECT id, modified FROM content.named", [LANGUAGE]],
  [
    "a view beside a table",
    "SELECT g.film_id, g.changed AS modified FROM content.genre g, content.named n",
    [FILM, LANGUAGE],
  ],
  ["a materialised view, which is a table", "SELECT id, modified FROM content.kept", []],
  ["a key of no table", "SELECT f.id, now() AS modified FROM content.film f", [FILM]],
  ["a column that is not there", "SELECT f.id, max(f.modified) FROM content.film f, content.genre GROUP BY 1", []],
  ["a column that nobody named", "SELECT f.id, f.modified::timestamptz(0) FROM content.film f, content.genre", [GENRE]],
  [
    "a CTE with the name of one around it",
    `WITH x AS (SELECT f.id, f.modified FROM content.film f, content.genre)
     SELECT y.id, y.modified FROM (WITH x AS (SELECT * FROM x) SELECT * FROM x) AS y`,
    [GENRE],
  ],
];

const unseenIn = (query: string): Promise<readonly string[]> => {
  const session = { query: async (text: string, values?: unknown[]) => ({ rows: await bench.query(text, values) }) };
  return unseenTables(session as never, query, "modified");
};

it.each(queries)("R5.2 names what is not seen: %s", async (_, query, expected) => {
  expect(await unseenIn(query)).toEqual(expected);
});

/** Each link is made of the one before it. */
function chain(links: number, first: string, linkOf: (before: string, place: number) => string): string {
  const ctes = Array.from({ length: links }, (_, place) => `c${place + 1} AS (${linkOf(`c${place}`, place)})`);
  return `WITH ${[`c0 AS (${first})`, ...ctes].join(", ")} SELECT * FROM c${links}`;
}

it("looks once at what is named twice in each link of a chain", async () => {
  const twice = (before: string) =>
    `SELECT a.id, greatest(a.modified, b.modified) AS modified FROM ${before} a, ${before} b`;
  expect(await unseenIn(chain(60, "SELECT id, modified FROM content.film", twice))).toEqual([]);
});

it("gives up on a query in which each link is used in other ways than the one before", async () => {
  const places = Array.from({ length: 16 }, (_, place) => place);
  const stamps = places.map((place) => `modified AS k${place}`).join(", ");
  const link = (before: string, place: number) => `
    SELECT a.id, greatest(a.modified, b.modified, b.k${place}) AS modified,
           ${places.map((other) => `greatest(a.k${other}, b.k${other}) AS k${other}`).join(", ")}
      FROM ${before} a, ${before} b`;
  const query = chain(places.length, `SELECT id, modified, ${stamps} FROM content.film`, link);
  await expect(unseenIn(query)).rejects.toThrow("in too many ways");
});
