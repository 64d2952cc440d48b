/** Queries that ask for much planning, by their size. Each was planned for minutes, or for ever, by a real server. */
type Structure = readonly [name: string, make: (n: number) => string, refusedAt: number, acceptedAt: number];

const list = (n: number, item: (i: number) => string, between = ", "): string =>
  Array.from({ length: n }, (_, i) => item(i)).join(between);

/** c1 is made of c0, c2 of c1, and so on. */
const chain = (n: number, link: (before: string) => string, how = ""): string =>
  `WITH c0 AS (SELECT rating AS a, id FROM content.film_work), ${list(n, (i) => `c${i + 1} AS ${how}(${link(`c${i}`)})`)} SELECT a FROM c${n}`;

export const STRUCTURES: readonly Structure[] = [
  ["a chain of expressions", (n) => chain(n, (c) => `SELECT a FROM ${c}`), 1800, 60],
  ["a chain in a subquery", (n) => `SELECT a FROM (${chain(n, (c) => `SELECT a FROM ${c}`)}) q`, 110, 60],
  ["a chain through conditions", (n) => chain(n, (c) => `SELECT 1 AS a WHERE 1 IN (SELECT a FROM ${c})`), 110, 40],
  ["a chain through columns", (n) => chain(n, (c) => `SELECT (SELECT max(a) FROM ${c}) AS a`), 110, 40],
  [
    "a chain of joins",
    (n) => chain(n, (c) => `SELECT x.id, x.a FROM ${c} x JOIN content.film_work USING (id)`),
    110,
    40,
  ],
  ["a chain of kept expressions", (n) => chain(n, (c) => `SELECT a FROM ${c}`, "MATERIALIZED "), 310, 200],
  ["pairs of kept expressions", (n) => chain(n, (c) => `SELECT x.a FROM ${c} x, ${c} y`), 310, 40],
  ["pairs that double", (n) => chain(n, (c) => `SELECT x.a FROM ${c} x, ${c} y`, "NOT MATERIALIZED "), 25, 4],
  ["branches that double", (n) => chain(n, (c) => `TABLE ${c} UNION ALL TABLE ${c}`, "NOT MATERIALIZED "), 25, 6],
  ["sums that double", (n) => chain(n, (c) => `SELECT a + a AS a FROM ${c}`), 30, 10],
  [
    "sums under other names",
    (n) =>
      chain(n, (c) => `SELECT b + b FROM ${c} AS q (b)`)
        .replaceAll("(SELECT b", "(a) AS (SELECT b")
        .replaceAll("AS (a) AS", "(a) AS"),
    30,
    10,
  ],
  [
    "sums of subqueries",
    (n) => `SELECT a FROM ${"(SELECT a + a AS a FROM ".repeat(n)}(SELECT 1 AS a) q${") q".repeat(n)}`,
    30,
    10,
  ],
  [
    "sums without a name",
    (n) => `SELECT 1 FROM ${'(SELECT "?column?" + "?column?" FROM '.repeat(n)}(SELECT 1 + 1) q${") q".repeat(n)}`,
    30,
    10,
  ],
  [
    "sums in conditions",
    (n) =>
      `SELECT 1 FROM ${"(SELECT (SELECT a + a) AS a FROM ".repeat(n)}(SELECT 1 AS a) q${") q".repeat(n)} WHERE a = 1`,
    30,
    8,
  ],
  [
    "sums of whole rows",
    (n) => `SELECT 1 FROM ${"(SELECT q AS a, q AS b FROM ".repeat(n)}(SELECT 1 AS a) q${") q".repeat(n)}`,
    30,
    8,
  ],
  ["tables", (n) => `SELECT 1 AS a FROM ${list(n, (i) => `content.genre t${i}`)}`, 2500, 60],
  ["subqueries", (n) => `SELECT 1 AS a FROM ${list(n, (i) => `(SELECT id FROM content.genre) t${i}`)}`, 2500, 60],
  ["functions as tables", (n) => `SELECT 1 AS a FROM ${list(n, (i) => `generate_series(1, 2) t${i}`)}`, 2500, 60],
  [
    "conditions on tables",
    (n) => `SELECT 1 AS a WHERE ${list(n, (i) => `EXISTS (SELECT FROM content.genre g${i})`, " AND ")}`,
    1200,
    60,
  ],
  ["single values", (n) => `SELECT 1 AS a WHERE 1 IN (${list(n, () => "(SELECT 1)")})`, 1200, 200],
  [
    "wide chains",
    (n) =>
      `WITH c0 AS (SELECT ${list(400, (i) => `rating AS a${i}`)} FROM content.film_work), ${list(n, (i) => `c${i + 1} AS (SELECT * FROM c${i})`)} SELECT * FROM c${n}`,
    80,
    20,
  ],
  [
    "conditions",
    (n) => `SELECT 1 AS a FROM content.film_work WHERE ${list(n, (i) => `(rating > ${i})`, " AND ")}`,
    2500,
    500,
  ],
  [
    "conditions in brackets",
    (n) => `SELECT 1 AS a FROM content.film_work WHERE ${list(n, () => "(true AND true)", " AND ")}`,
    1200,
    300,
  ],
  [
    "calls",
    (n) => `SELECT 1 AS a FROM content.film_work HAVING 1 IN (${list(n, (i) => `sum(rating + ${i})`)})`,
    4000,
    300,
  ],
  ["groups", (n) => `SELECT 1 AS a FROM content.film_work GROUP BY ${list(n, (i) => `rating + ${i}`)}`, 600, 100],
  ["orders", (n) => `SELECT 1 AS a FROM content.film_work ORDER BY ${list(n, (i) => `rating + ${i}`)}`, 600, 100],
  ["cubes", (n) => `SELECT 1 AS a FROM content.film_work GROUP BY CUBE (${list(n, (i) => `(rating + ${i})`)})`, 12, 8],
  [
    "cubes beside each other",
    (n) => `SELECT 1 AS a FROM content.film_work GROUP BY ${list(n, () => "CUBE (rating, type)")}`,
    6,
    2,
  ],
  [
    "cubes in branches",
    (n) => list(n, () => "SELECT 1 AS a FROM content.film_work GROUP BY CUBE (id, title, type, rating)", " UNION ALL "),
    100,
    20,
  ],
  [
    "cubes used again and again",
    (n) =>
      `WITH c AS NOT MATERIALIZED (SELECT id FROM content.film_work GROUP BY CUBE (id, title, type, rating)) ${list(n, () => "SELECT id FROM c", " UNION ALL ")}`,
    100,
    20,
  ],
  [
    "cubes of many columns",
    (n) =>
      `SELECT 1 AS a FROM content.film_work GROUP BY CUBE (id, title, type, rating, mood, best, meta, tags), ${list(n, (i) => `(rating + ${i})`)}`,
    400,
    50,
  ],
  [
    "columns set equal",
    (n) =>
      `SELECT 1 AS a FROM ${list(8, (i) => `content.film_work t${i}`)} WHERE ${list(n, (i) => `t${i % 8}.rating + ${i} = t${(i + 1) % 8}.rating + ${i}`, " AND ")}`,
    600,
    200,
  ],
  [
    "columns set equal in joins",
    (n) =>
      `SELECT 1 AS a FROM content.film_work t0 ${list(9, (i) => `JOIN content.film_work t${i + 1} ON (${list(n, (k) => `t${i}.rating + ${k}`)}) = (${list(n, (k) => `t${i + 1}.rating + ${k}`)})`, " ")}`,
    60,
    20,
  ],
  [
    "natural joins",
    (n) => `SELECT 1 AS a FROM content.genre ${list(n, (i) => `NATURAL JOIN content.genre t${i}`, " ")}`,
    60,
    5,
  ],
  [
    "conditions on branches inside a subquery",
    (n) =>
      `SELECT id FROM (SELECT * FROM (${list(100, () => "SELECT id, rating FROM content.film_work", " UNION ALL ")}) u) q WHERE ${list(n, (i) => `rating = ${i}`, " OR ")}`,
    1000,
    100,
  ],
  [
    "conditions on branches",
    (n) =>
      `SELECT id FROM (${list(100, () => "SELECT id, rating FROM content.film_work", " UNION ALL ")}) q WHERE ${list(n, (i) => `rating = ${i}`, " OR ")}`,
    1000,
    100,
  ],
];
