/**
 * Queries with what the guard must think of them. The benign ones are what analysts write; the hostile ones are what
 * others tried, and every way known to hide one thing in another.
 */
export interface CorpusQuery {
  readonly name: string;
  readonly sql: string;
  /** The first version of PostgreSQL that knows the syntax. */
  readonly since?: number;
}

/** Accepted by every gate. */
export const BENIGN: readonly CorpusQuery[] = [
  { name: "ok plain", sql: "SELECT id, title, modified FROM content.film_work" },
  {
    name: "ok cte window",
    sql: "WITH t AS (SELECT *, row_number() OVER (PARTITION BY film_id ORDER BY updated_at DESC) rn FROM ugc.ratings) SELECT f.id, f.title, t.rating FROM content.film_work f LEFT JOIN t ON t.film_id=f.id AND t.rn=1",
  },
  { name: "trailing comment", sql: "SELECT id FROM content.film_work --" },
  { name: "fn attribute notation", sql: "SELECT f.* FROM content.film_work f WHERE (f).title IS NOT NULL" },
  { name: "table cmd", sql: "TABLE content.film_work" },
  { name: "at tz", sql: "SELECT modified AT TIME ZONE 'UTC' FROM content.film_work" },
  {
    name: "lateral",
    sql: "SELECT f.id, r.n FROM content.film_work f CROSS JOIN LATERAL (SELECT count(*) n FROM ugc.ratings r WHERE r.film_id=f.id) r",
  },
  { name: "union", sql: "SELECT id FROM content.film_work UNION ALL SELECT film_id FROM ugc.ratings" },
  { name: "filter", sql: "SELECT film_id, count(*) FILTER (WHERE rating>3) c FROM ugc.ratings GROUP BY 1" },
  { name: "grouping sets", sql: "SELECT film_id, count(*) c FROM ugc.ratings GROUP BY GROUPING SETS ((film_id),())" },
  { name: "in list", sql: "SELECT id FROM content.film_work WHERE title IN ('a','b')" },
  {
    name: "distinct on",
    sql: "SELECT DISTINCT ON (film_id) film_id, rating FROM ugc.ratings ORDER BY film_id, updated_at DESC",
  },
  {
    name: "genres as array",
    sql: "SELECT f.id AS film_id, f.title, array_agg(DISTINCT f.title ORDER BY f.title) AS names, string_agg(f.title, ', ' ORDER BY f.title) AS joined FROM content.film_work f GROUP BY f.id, f.title",
  },
  {
    name: "text cleaning",
    sql: "SELECT id, lower(trim(regexp_replace(title, '\\s+', ' ', 'g'))) AS slug, lpad(left(title, 5), 8, '0') AS code, md5(title) AS h, concat_ws('-', title, rating) AS c FROM content.film_work",
  },
  {
    name: "recursive tree",
    sql: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT n FROM t",
  },
  {
    name: "date parts",
    sql: "SELECT date_trunc('month', updated_at) AS month, to_char(updated_at, 'YYYY-MM') AS label, date_part('dow', updated_at) AS dow, age(updated_at) AS age, make_interval(days => 3) AS i FROM ugc.ratings",
  },
  {
    name: "json table fns",
    sql: "SELECT f.id, e.key, e.value FROM content.film_work f, LATERAL jsonb_each_text(to_jsonb(f)) AS e(key, value)",
  },
  {
    name: "union with order limit",
    sql: "(SELECT id FROM content.film_work ORDER BY rating DESC NULLS LAST LIMIT 10) UNION (SELECT film_id FROM ugc.ratings GROUP BY film_id HAVING count(*) > 100)",
  },
  {
    name: "unnest with ordinality",
    sql: "SELECT f.id, w.word, w.pos FROM content.film_work f CROSS JOIN LATERAL unnest(string_to_array(f.title, ' ')) WITH ORDINALITY AS w(word, pos)",
  },
  {
    name: "columns with their schema",
    sql: "SELECT content.film_work.id, content.genre.* FROM content.film_work, content.genre",
  },
  { name: "a ruler", sql: `/${"*".repeat(200)}/ SELECT 1 AS id -- ${"=".repeat(200)}` },
  { name: "a constant", sql: "SELECT 1 AS id" },
  { name: "trailing semicolon", sql: "SELECT id FROM content.film_work;" },
  { name: "semicolon and comment", sql: "SELECT id FROM content.film_work ; -- the end" },
  { name: "nested comments", sql: "SELECT /* a /* b */ c */ id FROM content.film_work -- auth.users" },
  { name: "quoted names", sql: 'SELECT f."id" AS "Ид фильма", f."end" FROM "content"."film_work" AS f' },
  { name: "a keyword as a column", sql: "SELECT f.end, f.type FROM content.film_work f" },
  {
    name: "a column that begins like a function",
    sql: "SELECT f.has_subtitles FROM content.film_work f WHERE has_subtitles IS NOT TRUE",
  },
  { name: "values", sql: "VALUES (1, 'a'), (2, 'b')" },
  { name: "values as a table", sql: "SELECT v.n, v.t FROM (VALUES (1, 'a'), (2, 'b')) AS v (n, t)" },
  { name: "series", sql: "SELECT n AS id FROM generate_series(1, 10) AS n" },
  {
    name: "series of dates",
    sql: "SELECT d::date AS day FROM generate_series('2024-01-01'::timestamptz, now(), interval '1 day') AS d",
  },
  {
    name: "now and friends",
    sql: "SELECT now() AS a, current_date AS b, current_timestamp AS c, localtime AS d, date_trunc('day', now()) AS e, statement_timestamp() AS f",
  },
  {
    name: "case",
    sql: "SELECT id, CASE WHEN rating >= 8 THEN 'good' WHEN rating >= 5 THEN 'fair' ELSE 'poor' END AS class, CASE type WHEN 'movie' THEN 1 ELSE 0 END AS is_movie FROM content.film_work",
  },
  {
    name: "coalesce and nullif",
    sql: "SELECT coalesce(rating, 0) AS r, nullif(title, '') AS t, greatest(rating, 1) AS g, least(rating, 9) AS l FROM content.film_work",
  },
  {
    name: "casts",
    sql: "SELECT id::text, CAST(rating AS double precision) AS r, rating::numeric(10, 1) AS n, '2024-01-01'::date AS d, '1 day'::interval AS i, int '5' AS five, tags::varchar[] AS v FROM content.film_work",
  },
  {
    name: "enum and domain",
    sql: "SELECT id, mood, mood::text AS m, 'calm'::content.mood AS c, 5::content.score AS s FROM content.film_work WHERE mood = 'calm' OR best > 3",
  },
  {
    name: "row type of a table",
    sql: 'SELECT p.title FROM jsonb_populate_record(NULL::content.film_work, \'{"title": "x"}\') AS p',
  },
  {
    name: "interval arithmetic",
    sql: "SELECT id, modified + interval '1 day' AS a, modified - make_interval(hours => 2) AS b, age(now(), modified) AS c, extract(epoch FROM modified) AS e, modified AT TIME ZONE 'Europe/Moscow' AS z FROM content.film_work",
  },
  {
    name: "date functions",
    sql: "SELECT to_date('2024-01-31', 'YYYY-MM-DD') AS a, to_timestamp(0) AS b, make_date(2024, 2, 29) AS c, date_bin('15 minutes', modified, '2001-01-01') AS d, isfinite(modified) AS e, justify_days(interval '40 days') AS f FROM content.film_work",
  },
  {
    name: "overlaps",
    sql: "SELECT (DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE '2024-01-15', interval '3 days') AS o",
  },
  {
    name: "strings",
    sql: "SELECT upper(title) AS a, initcap(title) AS b, substring(title FROM 1 FOR 3) AS c, substring(title FROM '[0-9]+') AS d, overlay(title PLACING 'x' FROM 2) AS e, position('i' IN title) AS f, split_part(title, ' ', 2) AS g, translate(title, 'F', 'f') AS h, format('%s: %s', title, rating) AS i, trim(BOTH ' ' FROM title) AS j, reverse(title) AS k, title || '!' AS l, repeat('ab', 3) AS m, quote_literal(title) AS n, length(title) AS o, starts_with(title, 'F') AS p, encode(sha256(title::bytea), 'hex') AS q FROM content.film_work",
  },
  {
    name: "patterns",
    sql: "SELECT id FROM content.film_work WHERE title LIKE 'F%' AND title NOT ILIKE '%x%' AND title SIMILAR TO '(F|G)%' AND title ~* '^f' AND title !~ 'z$' AND title LIKE 'a\\_%' ESCAPE '\\'",
  },
  {
    name: "regular expressions",
    sql: "SELECT (regexp_match(title, '(\\d+)'))[1] AS n, regexp_split_to_array(title, '\\s') AS parts, m[1] AS word FROM content.film_work, LATERAL regexp_matches(title, '(\\w+)', 'g') AS m",
  },
  {
    name: "strings with every quote",
    sql: "SELECT $$it's$$ AS a, $x$a$$b$x$ AS b, E'tab\\t' AS c, U&'\\0441' AS d, 'a;b -- c' AS e, B'101' AS f, X'1F' AS g",
  },
  { name: "backslash is no escape", sql: "SELECT '\\' AS a, id FROM content.film_work WHERE title = '\\'" },
  {
    name: "arrays",
    sql: "SELECT tags[1] AS first, tags[1:2] AS two, cardinality(tags) AS n, 'a' = ANY (tags) AS has, tags || ARRAY['c'] AS more, array_length(tags, 1) AS len, array_to_string(tags, ',') AS joined, array_position(tags, 'b') AS pos, ARRAY(SELECT g.name FROM content.genre g ORDER BY 1) AS genres, ARRAY[[1, 2], [3, 4]] AS m, tags @> ARRAY['a'] AS c FROM content.film_work",
  },
  {
    name: "aggregates",
    sql: "SELECT type, count(*) AS n, count(DISTINCT rating) AS d, avg(rating) AS a, stddev_samp(rating) AS s, percentile_cont(0.5) WITHIN GROUP (ORDER BY rating) AS median, mode() WITHIN GROUP (ORDER BY type) AS m, bool_or(rating > 9) AS b, max(modified) AS last, corr(rating, 1) AS c, array_agg(title ORDER BY title) FILTER (WHERE rating > 5) AS good, jsonb_object_agg(id, title) AS o, string_agg(DISTINCT type, ',') AS types FROM content.film_work GROUP BY type HAVING count(*) > 1",
  },
  {
    name: "rollup and cube",
    sql: "SELECT type, mood, grouping(type, mood) AS g, count(*) AS n FROM content.film_work GROUP BY ROLLUP (type), CUBE (mood)",
  },
  {
    name: "group by distinct",
    sql: "SELECT type, count(*) AS n FROM content.film_work GROUP BY DISTINCT GROUPING SETS ((type), (type), ())",
  },
  {
    name: "windows",
    sql: "SELECT id, rank() OVER w AS r, lag(rating, 1) OVER w AS before, sum(rating) OVER (PARTITION BY type ORDER BY modified ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s, avg(rating) OVER (ORDER BY modified RANGE BETWEEN interval '7 days' PRECEDING AND CURRENT ROW) AS week, ntile(4) OVER (w) AS q, first_value(title) OVER w AS f FROM content.film_work WINDOW w AS (PARTITION BY type ORDER BY rating DESC NULLS LAST)",
  },
  {
    name: "joins",
    sql: "SELECT f.id, g.name AS genre FROM content.film_work f JOIN content.genre_film_work gf ON gf.film_work_id = f.id LEFT JOIN content.genre g ON g.id = gf.genre_id FULL JOIN ugc.ratings r USING (rating) CROSS JOIN (SELECT 1 AS one) o",
  },
  {
    name: "natural join and aliases of columns",
    sql: "SELECT j.id FROM (content.film_work NATURAL JOIN content.films) AS j",
  },
  {
    name: "join using with an alias",
    sql: "SELECT u.rating FROM content.film_work f JOIN ugc.ratings r USING (rating) AS u",
  },
  {
    name: "lateral top",
    sql: "SELECT f.id, r.rating FROM content.film_work f LEFT JOIN LATERAL (SELECT rating FROM ugc.ratings WHERE film_id = f.id ORDER BY updated_at DESC FETCH FIRST 1 ROW ONLY) r ON true",
  },
  {
    name: "exists and in",
    sql: "SELECT id FROM content.film_work f WHERE EXISTS (SELECT FROM ugc.ratings r WHERE r.film_id = f.id) AND id IN (SELECT film_id FROM ugc.ratings) AND rating > ALL (SELECT 0) AND (id, title) NOT IN (SELECT id, title FROM content.films)",
  },
  {
    name: "scalar subquery",
    sql: "SELECT id, (SELECT avg(r.rating) FROM ugc.ratings r WHERE r.film_id = f.id) AS mean FROM content.film_work f",
  },
  {
    name: "row comparison",
    sql: "SELECT id FROM content.film_work WHERE (modified, id) > ('2020-01-01', '00000000-0000-0000-0000-000000000000') AND ROW(rating, type) IS DISTINCT FROM ROW(1, 'x')",
  },
  {
    name: "whole row as JSON",
    sql: "SELECT f.id, row_to_json(f) AS a, to_jsonb(f) - 'meta' AS b, f.row_to_json AS c FROM content.film_work f",
  },
  {
    name: "JSON operators",
    sql: "SELECT meta -> 'n' AS a, meta ->> 'n' AS b, meta #>> '{a,b}' AS c, meta @> '{\"n\": 1}' AS d, meta ? 'n' AS e, jsonb_set(meta, '{x}', '1') AS f, jsonb_path_query_first(meta, '$.n') AS g, jsonb_build_object('id', id) AS h, meta['n'] AS i FROM content.film_work",
  },
  {
    name: "JSON as rows",
    sql: "SELECT f.id, x.n FROM content.film_work f, LATERAL jsonb_to_record(f.meta) AS x (n integer), LATERAL jsonb_array_elements_text('[1, 2]') AS e",
  },
  {
    name: "rows from",
    sql: "SELECT * FROM ROWS FROM (generate_series(1, 3), json_to_recordset('[{\"a\": 1}]') AS (a integer)) WITH ORDINALITY AS r (n, a, no)",
  },
  {
    name: "full text",
    sql: "SELECT id, ts_rank(to_tsvector('english', title), q) AS rank, ts_headline('english', title, q) AS h FROM content.film_work, websearch_to_tsquery('english'::regconfig, 'film -x') AS q WHERE to_tsvector('simple', title) @@ q",
  },
  {
    name: "ranges",
    sql: "SELECT int4range(1, 5) @> 3 AS a, tstzrange(modified, NULL) && tstzrange(now(), NULL) AS b, upper(numrange(1, 2)) AS c, range_agg(daterange(creation_date, creation_date + 1)) AS d FROM content.film_work GROUP BY modified",
  },
  {
    name: "geometry and network",
    sql: "SELECT point(1, 2) <-> point(3, 4) AS d, inet '10.0.0.1' << inet '10.0.0.0/8' AS n, host(inet '10.0.0.1') AS h",
  },
  {
    name: "collation",
    sql: 'SELECT id FROM content.film_work ORDER BY title COLLATE "C", lower(title) COLLATE pg_catalog."default" USING OPERATOR(pg_catalog.<)',
  },
  {
    name: "operator of PostgreSQL by name",
    sql: "SELECT 1 OPERATOR(pg_catalog.+) 2 AS three, pg_catalog.lower('A') AS a",
  },
  { name: "sampling", sql: "SELECT id FROM content.film_work TABLESAMPLE BERNOULLI (10) REPEATABLE (1)" },
  { name: "only", sql: "SELECT id FROM ONLY content.event_2020 LIMIT 5 OFFSET 2" },
  { name: "partitions", sql: "SELECT id, at FROM content.event" },
  { name: "a view", sql: "SELECT id, title FROM content.films" },
  { name: "a view over a view", sql: "SELECT id FROM content.best_films" },
  { name: "a materialized view", sql: "SELECT month, n FROM content.monthly" },
  { name: "a domain with a check of its own, read", sql: "SELECT id, code, upper(code) AS u FROM content.coupon" },
  { name: "a materialized view over a schema that is not allowed", sql: "SELECT login FROM content.kept_logins" },
  {
    name: "recursive genres",
    sql: "WITH RECURSIVE tree AS (SELECT id, name, 1 AS depth FROM content.genre WHERE parent_id IS NULL UNION ALL SELECT g.id, g.name, t.depth + 1 FROM content.genre g JOIN tree t ON g.parent_id = t.id WHERE t.depth < 10) SELECT * FROM tree",
  },
  {
    name: "search and cycle",
    sql: "WITH RECURSIVE tree AS (SELECT id, parent_id FROM content.genre UNION ALL SELECT g.id, g.parent_id FROM content.genre g JOIN tree t ON g.parent_id = t.id) SEARCH DEPTH FIRST BY id SET place CYCLE id SET looped USING path SELECT id, looped FROM tree",
  },
  {
    name: "CTE of a CTE",
    sql: "WITH a AS (SELECT id FROM content.film_work), b AS MATERIALIZED (SELECT id FROM a), c AS (WITH d AS (SELECT id FROM b) SELECT id FROM d) SELECT c.id FROM c JOIN b USING (id)",
  },
  { name: "a CTE named like a table", sql: "WITH users AS (SELECT id FROM content.film_work) SELECT id FROM users" },
  {
    name: "a CTE in a subquery",
    sql: "SELECT (WITH x AS (SELECT 1 AS n) SELECT n FROM x) AS n, s.n AS m FROM (WITH y AS (SELECT 2 AS n) SELECT n FROM y) s",
  },
  {
    name: "set operations",
    sql: "SELECT id FROM content.film_work EXCEPT SELECT film_id FROM ugc.ratings INTERSECT ALL SELECT id FROM content.film_work ORDER BY 1",
  },
  {
    name: "limit by a subquery",
    sql: "SELECT id FROM content.film_work LIMIT (SELECT count(*) / 2 FROM content.film_work)",
  },
  {
    name: "functions of types",
    sql: "SELECT pg_typeof(title)::text AS t, pg_column_size(meta) AS s, pg_size_pretty(100000::bigint) AS p FROM content.film_work",
  },
  { name: "a user", sql: "SELECT current_user AS who, session_user AS as_whom" },
  { name: "duplicate columns", sql: "SELECT id, id FROM content.film_work" },
  { name: "a column without a name", sql: "SELECT id, 1 FROM content.film_work" },
  {
    name: "ctid",
    sql: "SELECT a.id FROM content.film_work a JOIN content.film_work b ON a.id = b.id AND a.ctid < b.ctid",
  },
  {
    name: "hash buckets",
    sql: "SELECT abs(hashtext(title)) % 16 AS bucket, width_bucket(rating, 0, 10, 5) AS w, md5(title)::uuid AS u FROM content.film_work",
  },
  {
    name: "deduplication",
    sql: "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY title ORDER BY modified DESC) AS n FROM content.film_work) t WHERE n = 1",
  },
  { name: "unicode", sql: "SELECT id AS идентификатор, 'ёлка 🎄' AS \"праздник 🎄\" FROM content.film_work" },
  { name: "sleep in a text", sql: "SELECT 'pg_sleep(5)' AS t, $q$DELETE FROM auth.users$q$ AS u" },
  { name: "any value", sql: "SELECT any_value(title) AS t FROM content.film_work", since: 16 },
  { name: "JSON predicates", sql: "SELECT id, meta::text IS JSON OBJECT AS o FROM content.film_work", since: 16 },
  {
    name: "JSON constructors",
    sql: "SELECT JSON_OBJECT('id': id, 'title': title ABSENT ON NULL) AS o, JSON_ARRAY(1, 2) AS a, JSON_ARRAY(SELECT name FROM content.genre) AS q FROM content.film_work",
    since: 16,
  },
  {
    name: "JSON aggregates",
    sql: "SELECT JSON_ARRAYAGG(title ORDER BY title RETURNING jsonb) AS a, JSON_OBJECTAGG(id: title) AS o FROM content.film_work",
    since: 16,
  },
  { name: "numbers with underscores", sql: "SELECT 1_000_000 AS million", since: 16 },
  {
    name: "SQL/JSON functions",
    sql: "SELECT JSON_VALUE(meta, '$.n' RETURNING integer DEFAULT 0 ON EMPTY) AS v, JSON_QUERY(meta, '$.x' WITH WRAPPER) AS q, JSON_EXISTS(meta, '$.n ? (@ > $m)' PASSING 3 AS m) AS e, JSON('{}') AS j, JSON_SCALAR(1) AS s, JSON_SERIALIZE('{}') AS z FROM content.film_work",
    since: 17,
  },
  {
    name: "JSON_TABLE",
    sql: "SELECT f.id, t.n, t.x FROM content.film_work f, JSON_TABLE(f.meta, '$' COLUMNS (n integer PATH '$.n', o FOR ORDINALITY, NESTED PATH '$.xs[*]' COLUMNS (x text PATH '$'))) AS t",
    since: 17,
  },
  { name: "a domain with a check of its own, read through a view", sql: "SELECT id, word FROM content.read_words" },
  {
    name: "a domain with a check of its own, compared with texts",
    sql: "SELECT coalesce(word, 'x') AS a FROM content.watched_words WHERE word IN ('a', 'b') AND (id, word) > (0, '')",
  },
  { name: "row security that asks who reads", sql: "SELECT id FROM content.own_rows" },
  { name: "own functions of columns in indexes and checks", sql: "SELECT id FROM content.honest WHERE id < 9" },
  {
    name: "huge IN list",
    sql: `SELECT * FROM content.film_work WHERE title IN (${Array.from({ length: 20_000 }, (_, n) => `'${n}'`).join(",")})`,
  },
  {
    name: "long CASE",
    sql: `SELECT CASE ${Array.from({ length: 500 }, (_, n) => `WHEN rating = ${n} AND type = 'a' THEN ${n} + 1`).join(" ")} END AS c FROM content.film_work`,
  },
  {
    name: "many branches",
    sql: Array.from({ length: 200 }, (_, n) => `SELECT ${n} AS n, 'x' AS t`).join(" UNION ALL "),
  },
];
