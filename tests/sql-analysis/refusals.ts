import type { FollowTables } from "../../src/domain/follow.ts";
import type { FollowedQuery } from "./queries.ts";

/** Queries that cannot be followed, why, and the way that somebody might think of instead: it goes wrong. */
export interface RefusedQuery extends FollowedQuery {
  /** `table: beginning of the sentence`; the table is empty where it is about the query. */
  readonly refusals: readonly string[];
  readonly naive?: FollowTables;
}

const NO_WAY = "No equality leads from";
const FLAGS = "SELECT count(*) FROM content.flag x WHERE x.film_id = f.id HAVING count(*) > 0";
const RATINGS_OF_FILM = "content.rating r WHERE r.film_id = f.id";
const RATINGS = `${RATINGS_OF_FILM} AND r.person_id = p.id`;
const columns = (table: string, ...names: string[]): FollowTables => ({ [`content.${table}`]: { key_columns: names } });

export const REFUSED: readonly RefusedQuery[] = [
  {
    name: "recursive",
    key: ["id"],
    sql: "WITH RECURSIVE t AS (SELECT g.id, g.parent_id, 1 AS depth FROM content.genre g WHERE g.parent_id IS NULL UNION ALL SELECT g.id, g.parent_id, t.depth + 1 FROM content.genre g JOIN t ON t.id = g.parent_id WHERE t.depth < 5) SELECT id, depth FROM t",
    refusals: ["content.genre: The query is recursive: how far a change reaches is only known by running it."],
    naive: columns("genre", "id"),
  },
  {
    name: "variadic call in FROM",
    key: ["k"],
    sql: "SELECT x.k, count(*) AS n FROM content.film f CROSS JOIN LATERAL concat_ws('-', VARIADIC f.tags) x(k) GROUP BY x.k",
    refusals: ["content.film: "],
    // As it would be if the one word were lost.
    naive: { "content.film": { keys: "SELECT concat_ws('-', c.tags) FROM changed c" } },
  },
  {
    name: "global window",
    key: ["id"],
    sql: "SELECT f.id, rank() OVER (ORDER BY f.title) AS n FROM content.film f",
    refusals: ["content.film: The window of n looks at all rows: a change of one row changes others."],
    naive: columns("film", "id"),
  },
  {
    name: "limit",
    key: ["id"],
    sql: "SELECT f.id, f.title FROM content.film f ORDER BY f.title, f.id LIMIT 3",
    refusals: ["content.film: The LIMIT chooses among all rows: a change of one row moves others in or out."],
    naive: columns("film", "id"),
  },
  {
    name: "limit in a subquery",
    key: ["id"],
    sql: "SELECT f.id, x.score FROM content.film f LEFT JOIN (SELECT r.film_id, r.score FROM content.rating r ORDER BY r.score, r.film_id LIMIT 3) x ON x.film_id = f.id",
    refusals: ["content.rating: The LIMIT chooses among all rows"],
    naive: columns("rating", "film_id"),
  },
  {
    name: "rollup",
    key: ["country_id"],
    sql: "SELECT COALESCE(s.country_id, 0) AS country_id, count(*) AS n FROM content.studio s GROUP BY ROLLUP (s.country_id)",
    refusals: ["content.studio: GROUPING SETS make totals over rows with other keys"],
    naive: columns("studio", "country_id"),
  },
  {
    name: "share of the total",
    key: ["id"],
    sql: "SELECT f.id, (SELECT count(*) FROM content.rating r) AS n FROM content.film f",
    refusals: [
      "content.rating: The subquery over content.rating does not depend on the row: every change of it changes all rows.",
    ],
    naive: columns("rating", "film_id"),
  },
  {
    name: "cross join of an aggregate",
    key: ["id"],
    sql: "SELECT f.id, x.n FROM content.film f CROSS JOIN (SELECT count(*) AS n FROM content.rating) x",
    refusals: [`content.rating: ${NO_WAY} content.rating to the key id.`],
    naive: columns("rating", "film_id"),
  },
  {
    name: "only an inequality",
    key: ["id"],
    sql: "SELECT f.id, count(r.id) AS n FROM content.film f LEFT JOIN content.rating r ON r.film_id < f.id GROUP BY f.id",
    refusals: [`content.rating: ${NO_WAY} content.rating (r) to the key id.`],
    naive: columns("rating", "film_id"),
  },
  {
    name: "OR in a join, without an equality in one part",
    key: ["id"],
    sql: "SELECT f.id, count(r.id) AS n FROM content.film f LEFT JOIN content.rating r ON r.film_id = f.id OR r.score > f.country_id GROUP BY f.id",
    refusals: [`content.rating: ${NO_WAY}`],
    naive: columns("rating", "film_id"),
  },
  {
    // Of arrays the items are compared, and not the arrays: an equality with one of these could not even be run.
    name: "an array of arrays",
    key: ["id"],
    sql: "SELECT f.id, g.name FROM content.film f JOIN content.genre g ON f.id = ANY (ARRAY[ARRAY[g.id, g.parent_id], ARRAY[g.parent_id, g.id]])",
    refusals: [`content.genre: ${NO_WAY} content.genre (g) to the key id.`],
    naive: columns("genre", "id"),
  },
  {
    // Nothing joins the tables that they are of, so the statement would have no SELECT that has both.
    name: "columns that a query on the way does not have together",
    key: ["k"],
    sql: "SELECT t.title AS k, count(*) AS n FROM (SELECT f.title, x.id FROM content.film f JOIN (SELECT c.id, g.id AS other FROM content.country c CROSS JOIN content.genre g) x ON x.id = f.country_id AND x.other = f.parent_id) t JOIN content.rating r ON r.film_id = t.id GROUP BY t.title",
    refusals: [`content.rating: ${NO_WAY} content.rating (r) to the key k.`],
    // As if the ids were those of the film, which stands nearest.
    naive: { "content.rating": { keys: "SELECT f.title FROM changed c JOIN present.film f ON f.id = c.film_id" } },
  },
  {
    name: "not in",
    key: ["id"],
    sql: "SELECT f.id FROM content.film f WHERE f.id NOT IN (SELECT x.film_id FROM content.flag x)",
    refusals: ["content.flag: NOT IN over content.flag: one NULL changes the answer of every row. Write NOT EXISTS."],
    naive: columns("flag", "film_id"),
  },
  {
    name: "in as a value",
    key: ["id"],
    sql: "SELECT f.id, f.id IN (SELECT x.film_id FROM content.flag x) AS flagged FROM content.film f",
    refusals: ["content.flag: IN over content.flag is used as a value"],
    naive: columns("flag", "film_id"),
  },
  {
    name: "aggregate as the key",
    key: ["top"],
    sql: "SELECT max(r.score) AS top, r.film_id FROM content.rating r GROUP BY r.film_id",
    refusals: ["content.rating: The key top is computed by max(): it changes with the rows it is computed from."],
    naive: columns("rating", "score"),
  },
  {
    name: "subquery as the key",
    key: ["top"],
    sql: "SELECT (SELECT max(r.score) FROM content.rating r WHERE r.film_id = f.id) AS top, f.title FROM content.film f",
    refusals: [
      "content.film: The key top is computed by a subquery",
      "content.rating: The key top is computed by a subquery",
    ],
    naive: {
      "content.film": { keys: "SELECT r.score FROM changed c JOIN present.rating r ON r.film_id = c.id" },
      "content.rating": { key_columns: ["score"] },
    },
  },
  {
    name: "key from an optional side",
    key: ["id"],
    sql: "SELECT f.id, g.name FROM content.genre g LEFT JOIN (content.film_genre fg JOIN content.film f ON f.id = fg.film_id) ON fg.genre_id = g.id",
    refusals: ["genre", "film_genre", "film"].map(
      (table) =>
        `content.${table}: The key id comes from content.film (f), which is on the optional side of an outer join: rows without it have no key.`,
    ),
  },
  {
    name: "partition from an optional side",
    key: ["id"],
    sql: "SELECT f.id, count(*) OVER (PARTITION BY s.country_id) AS n FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id",
    refusals: ["content.film: The window of n goes by a column", "content.studio: The window of n goes by a column"],
    naive: {
      "content.film": {
        keys: "SELECT f.id FROM changed c JOIN present.studio s ON s.id = c.studio_id JOIN present.studio o ON o.country_id = s.country_id JOIN present.film f ON f.studio_id = o.id",
      },
      "content.studio": {
        keys: "SELECT f.id FROM changed c JOIN present.studio o ON o.country_id = c.country_id JOIN present.film f ON f.studio_id = o.id",
      },
    },
  },
  {
    name: "COALESCE across an outer join",
    key: ["id"],
    sql: "SELECT c.id, c.name, s.name AS studio FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id JOIN content.country c ON c.id = COALESCE(s.country_id, 1)",
    refusals: [`content.film: ${NO_WAY}`, `content.studio: ${NO_WAY}`],
    naive: {
      "content.film": {
        keys: "SELECT COALESCE(s.country_id, 1) FROM changed c JOIN present.studio s ON s.id = c.studio_id",
      },
      "content.studio": { keys: "SELECT COALESCE(c.country_id, 1) FROM changed c" },
    },
  },
  {
    name: "COALESCE of columns that the FULL JOIN does not set equal",
    key: ["id"],
    sql: "SELECT COALESCE(a.person_id, b.score) AS id, a.kind FROM content.role a FULL JOIN content.rating b ON a.film_id = b.film_id",
    refusals: [`content.role: ${NO_WAY}`, `content.rating: ${NO_WAY}`],
    naive: { ...columns("role", "person_id"), ...columns("rating", "score") },
  },
  {
    name: "a way through an optional side",
    key: ["country"],
    sql: "SELECT c.id AS country, count(f.id) AS n, count(*) AS pairs FROM content.country c CROSS JOIN content.studio s LEFT JOIN content.film f ON f.country_id = c.id AND f.studio_id = s.id GROUP BY c.id",
    refusals: [`content.studio: ${NO_WAY} content.studio (s) to the key country.`],
    naive: {
      "content.studio": { keys: "SELECT f.country_id FROM changed c JOIN present.film f ON f.studio_id = c.id" },
    },
  },
  {
    // Nothing above the join asks for more than its key: it would be right, and the analysis does not tell the two apart.
    name: "subquery in the ON of an outer join",
    key: ["id"],
    sql: "SELECT f.id, s.name FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id AND EXISTS (SELECT FROM content.person p WHERE p.country_id = s.country_id)",
    refusals: ["content.person: The subquery over content.person stands in the ON of an outer join"],
  },
  {
    name: "subquery in an ON of an outer join, and a way on from its optional side",
    key: ["id"],
    sql: "SELECT x.id, s.name FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id AND EXISTS (SELECT FROM content.person p WHERE p.country_id = s.country_id) JOIN content.rating x ON x.film_id = f.id AND x.score = COALESCE(s.country_id, 1)",
    refusals: ["content.person: The subquery over content.person stands in the ON of an outer join"],
  },
  {
    name: "subquery in a call in FROM",
    key: ["id"],
    sql: "SELECT c.id, g.n FROM content.film f LEFT JOIN (content.studio s CROSS JOIN LATERAL generate_series(1, (SELECT count(*) FROM content.rating r WHERE r.film_id = s.id)) g(n)) ON s.id = f.studio_id JOIN content.country c ON c.id = COALESCE(s.country_id, 1)",
    refusals: [
      `content.film: ${NO_WAY}`,
      `content.studio: ${NO_WAY}`,
      "content.rating: The subquery over content.rating stands in the ON of an outer join, or of a join on its optional side, or in a call in FROM",
    ],
    naive: {
      "content.film": { on_change: "everything" },
      "content.studio": { on_change: "everything" },
      "content.rating": { keys: "SELECT s.country_id FROM changed c JOIN present.studio s ON s.id = c.film_id" },
    },
  },
  ...[
    "EXISTS (SELECT FROM content.person p WHERE p.country_id = s.country_id)",
    "s.id IN (SELECT p.country_id FROM content.person p)",
  ].map((condition) => ({
    name: `subquery in an ON inside an optional side: ${condition.slice(0, 6)}`,
    key: ["id"],
    sql: `SELECT x.id, c.name FROM content.film f LEFT JOIN (content.studio s JOIN content.country c ON c.id = s.country_id AND ${condition}) ON s.id = f.studio_id JOIN content.rating x ON x.film_id = f.id AND x.score = COALESCE(s.country_id, 1)`,
    refusals: [
      "content.person: The subquery over content.person stands in the ON of an outer join, or of a join on its optional side",
    ],
  })),
  ...[
    ["by an aggregate", `SELECT count(*) + (${FLAGS}) FROM ${RATINGS}`],
    [
      "where other tables are joined",
      `SELECT count(*) + (${FLAGS}) FROM ${RATINGS_OF_FILM} AND f.country_id = p.country_id`,
    ],
    ["by an aggregate in another subquery", `SELECT (SELECT count(r.id) + (${FLAGS})) FROM ${RATINGS}`],
    ["by HAVING", `SELECT 1 FROM ${RATINGS} HAVING EXISTS (SELECT FROM content.flag x WHERE x.film_id = f.id)`],
    ["by an empty grouping set", `SELECT (${FLAGS}) FROM ${RATINGS} GROUP BY ()`],
  ].map(([how, select]) => ({
    name: `subquery of a group of no rows: ${how}`,
    key: ["id", "film"],
    sql: `SELECT p.id, f.id AS film, (${select}) AS n FROM content.film f CROSS JOIN content.person p`,
    refusals: ["film (f)", "person (p)", "flag (x)"].map(
      (table) => `content.${table.replace(/ .*/, "")}: ${NO_WAY} content.${table} to the key "id, film".`,
    ),
    naive: {
      "content.film": { on_change: "everything" as const },
      "content.person": { on_change: "everything" as const },
      "content.flag": {
        keys: "SELECT r.person_id, c.film_id FROM changed c JOIN present.rating r ON r.film_id = c.film_id",
      },
    },
  })),
  {
    name: "a way through a total of GROUPING SETS, with LIMIT",
    key: ["id"],
    sql: "SELECT c.id, q.n FROM content.film f JOIN (SELECT s.country_id, count(*) AS n FROM content.studio s WHERE s.country_id > 0 GROUP BY ROLLUP (s.country_id) ORDER BY n DESC, s.country_id LIMIT 5) q ON q.country_id IS NOT DISTINCT FROM f.country_id JOIN content.country c ON c.id = COALESCE(q.country_id, 3)",
    refusals: [`content.film: ${NO_WAY} content.film (f) to the key id.`, "content.studio: The LIMIT chooses"],
    naive: {
      "content.film": {
        keys: "SELECT COALESCE(s.country_id, 3) FROM changed c JOIN present.studio s ON s.country_id = c.country_id",
      },
      "content.studio": { on_change: "everything" },
    },
  },
  {
    name: "a subquery that depends on the row, but not by an equality",
    key: ["id"],
    sql: "SELECT f.id, (SELECT count(*) FROM content.rating r WHERE r.score < f.parent_id) AS n FROM content.film f",
    refusals: [`content.rating: ${NO_WAY} content.rating (r) to the key id.`],
    naive: { "content.rating": { keys: "SELECT f.id FROM changed c JOIN present.film f ON f.parent_id = c.score" } },
  },
  {
    name: "window as the key",
    key: ["n"],
    sql: "SELECT rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS n, r.id FROM content.rating r",
    refusals: ["content.rating: The key n is computed by a window"],
    naive: {
      "content.rating": { keys: "SELECT rank() OVER (PARTITION BY c.film_id ORDER BY c.score) FROM changed c" },
    },
  },
  {
    name: "windows on three levels, all wider than the key",
    key: ["id"],
    sql: "SELECT y.id, rank() OVER (PARTITION BY y.score ORDER BY y.b) AS c FROM (SELECT x.id, x.score, rank() OVER (PARTITION BY x.person_id ORDER BY x.a) AS b FROM (SELECT r.id, r.person_id, r.score, rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS a FROM content.rating r) x) y",
    refusals: ["content.rating: The window of a looks at rows with other keys: PARTITION BY does not hold the key."],
    // By two steps, which is as far as is looked.
    naive: {
      "content.rating": {
        keys: "SELECT z.id FROM changed c JOIN present.rating y ON y.person_id IS NOT DISTINCT FROM c.person_id JOIN present.rating z ON z.score IS NOT DISTINCT FROM y.score",
      },
    },
  },
  {
    name: "windows and DISTINCT ON, both wider than the key",
    key: ["id"],
    sql: "SELECT DISTINCT ON (r.person_id) r.id, rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS n FROM content.rating r ORDER BY r.person_id, r.id",
    refusals: ["content.rating: DISTINCT ON chooses among rows with other keys: its columns do not hold the key."],
    naive: columns("rating", "id"),
  },
  {
    name: "DISTINCT ON, wider than the key, of a window",
    key: ["id"],
    sql: "SELECT DISTINCT ON (r.person_id) r.id, rank() OVER (PARTITION BY r.id ORDER BY r.score) AS n FROM content.rating r ORDER BY r.person_id, r.id",
    refusals: ["content.rating: DISTINCT ON chooses among rows with other keys: its columns do not hold the key."],
    naive: columns("rating", "id"),
  },
  {
    name: "time",
    key: ["id"],
    sql: "SELECT f.id, now() AS at, CURRENT_DATE AS day FROM content.film f",
    refusals: [
      ": The query asks for the time (now()): rows change without any table changing. Only a sweep sees that.",
      ": The query asks for the time (CURRENT_DATE)",
    ],
  },
  {
    name: "time in a text",
    key: ["id"],
    sql: "SELECT f.id, f.id < 'today'::date - '2020-01-01'::date AS old, f.title = 'now' AS is_now FROM content.film f",
    refusals: [": The query asks for the time ('today'): rows change without any table changing."],
  },
  {
    name: "session",
    key: ["id"],
    sql: "SELECT f.id, CURRENT_USER AS who FROM content.film f",
    refusals: [": The query asks who reads it (CURRENT_USER)"],
  },
  {
    name: "volatile",
    key: ["id"],
    sql: "SELECT f.id, random() AS r FROM content.film f",
    refusals: [": The query calls random(), which may answer differently every time."],
  },
  {
    name: "sample",
    key: ["id"],
    sql: "SELECT f.id FROM content.film f TABLESAMPLE bernoulli (50)",
    refusals: ["content.film: TABLESAMPLE takes other rows of content.film every time."],
  },
  {
    name: "a join with a name of its own",
    key: ["id"],
    sql: "SELECT j.id FROM (content.film f JOIN content.flag x ON x.film_id = f.id) j",
    refusals: [': What "j.id" means cannot be told', "content.film: The key id", "content.flag: The key id"],
  },
  {
    name: "no such key",
    key: ["nothing"],
    sql: "SELECT f.id FROM content.film f",
    refusals: [": The query has no column nothing: a mart that follows is written by its key."],
  },
];
