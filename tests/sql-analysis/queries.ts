/** Every class of query that can be followed, with the keys of its mart. */
export interface FollowedQuery {
  readonly name: string;
  readonly key: readonly string[];
  readonly sql: string;
}

const query = (name: string, key: string, sql: string): FollowedQuery => ({ name, key: key.split(","), sql });

export const QUERIES: readonly FollowedQuery[] = [
  query("one table", "id", "SELECT f.id, f.title FROM content.film f"),
  query("filter", "id", "SELECT f.id, f.title FROM content.film f WHERE f.title > 'b' AND f.country_id IS NOT NULL"),
  query("expression key", "k", "SELECT upper(f.title) AS k, f.id FROM content.film f"),
  query("constant in the key", "kind,id", "SELECT 'film' AS kind, f.id FROM content.film f"),
  query("inner join", "id", "SELECT f.id, s.name FROM content.film f JOIN content.studio s ON s.id = f.studio_id"),
  query("comma join", "id", "SELECT f.id, s.name FROM content.film f, content.studio s WHERE s.id = f.studio_id"),
  query(
    "join chain",
    "id",
    "SELECT f.id, c.name FROM content.film f JOIN content.studio s ON s.id = f.studio_id JOIN content.country c ON c.id = s.country_id",
  ),
  query(
    "left chain",
    "id",
    "SELECT f.id, s.name AS studio, c.name FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id LEFT JOIN content.country c ON c.id = s.country_id",
  ),
  query(
    "right join",
    "id",
    "SELECT f.id, s.name FROM content.studio s RIGHT JOIN content.film f ON s.id = f.studio_id",
  ),
  query(
    "left join of a join",
    "id",
    "SELECT f.id, g.name FROM content.film f LEFT JOIN (content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id) ON fg.film_id = f.id",
  ),
  query(
    "optional side that is needed above",
    "id",
    "SELECT f.id, c.name FROM content.country c LEFT JOIN content.film f ON f.country_id = c.id JOIN content.rating r ON r.film_id = f.id",
  ),
  query(
    "group by the key",
    "film_id",
    "SELECT r.film_id, count(*) AS n, sum(r.score) AS s FROM content.rating r GROUP BY r.film_id",
  ),
  query(
    "having",
    "film_id",
    "SELECT r.film_id, count(*) AS n FROM content.rating r GROUP BY r.film_id HAVING count(*) > 1",
  ),
  query(
    "join, then group",
    "id",
    "SELECT f.id, f.title, count(r.id) AS n FROM content.film f LEFT JOIN content.rating r ON r.film_id = f.id GROUP BY f.id, f.title",
  ),
  query(
    "group by a far table",
    "id",
    "SELECT c.id, count(*) AS n FROM content.country c JOIN content.studio s ON s.country_id = c.id JOIN content.film f ON f.studio_id = s.id GROUP BY c.id",
  ),
  query(
    "group by a name",
    "name",
    "SELECT g.name, count(*) AS n FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id GROUP BY g.name",
  ),
  query(
    "key of two tables",
    "film,genre",
    "SELECT f.id AS film, g.id AS genre, g.name FROM content.film f JOIN content.film_genre fg ON fg.film_id = f.id JOIN content.genre g ON g.id = fg.genre_id",
  ),
  query(
    "key of two tables, by names",
    "title,name",
    "SELECT f.title, g.name, count(*) AS n FROM content.film f JOIN content.film_genre fg ON fg.film_id = f.id JOIN content.genre g ON g.id = fg.genre_id GROUP BY f.title, g.name",
  ),
  query(
    "key of two tables, grouped",
    "studio,country",
    "SELECT s.name AS studio, c.name AS country, count(*) AS n FROM content.film f JOIN content.studio s ON s.id = f.studio_id JOIN content.country c ON c.id = f.country_id GROUP BY s.name, c.name",
  ),
  query(
    "lateral aggregate",
    "id",
    "SELECT f.id, l.n FROM content.film f CROSS JOIN LATERAL (SELECT count(*) AS n FROM content.rating r WHERE r.film_id = f.id) l",
  ),
  query(
    "lateral top 1",
    "id",
    "SELECT f.id, l.score FROM content.film f LEFT JOIN LATERAL (SELECT r.score FROM content.rating r WHERE r.film_id = f.id ORDER BY r.score DESC NULLS LAST LIMIT 1) l ON true",
  ),
  query(
    "lateral json",
    "id",
    "SELECT f.id, l.names FROM content.film f LEFT JOIN LATERAL (SELECT jsonb_agg(p.name ORDER BY p.name) AS names FROM content.role ro JOIN content.person p ON p.id = ro.person_id WHERE ro.film_id = f.id) l ON true",
  ),
  query(
    "left join of grouped",
    "id",
    "SELECT f.id, r.n, g.n AS genres FROM content.film f LEFT JOIN (SELECT film_id, count(*) AS n FROM content.rating GROUP BY film_id) r ON r.film_id = f.id LEFT JOIN (SELECT film_id, count(*) AS n FROM content.film_genre GROUP BY film_id) g ON g.film_id = f.id",
  ),
  query(
    "CTE per child",
    "id",
    "WITH r AS (SELECT film_id, sum(score) AS s FROM content.rating GROUP BY film_id), g AS (SELECT fg.film_id, jsonb_agg(g.name ORDER BY g.name) AS names FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id GROUP BY fg.film_id) SELECT f.id, r.s, g.names FROM content.film f LEFT JOIN r ON r.film_id = f.id LEFT JOIN g ON g.film_id = f.id",
  ),
  query(
    "CTE on CTE",
    "id",
    "WITH a AS (SELECT film_id, person_id, count(*) AS n FROM content.rating GROUP BY film_id, person_id), b AS (SELECT film_id, max(n) AS m FROM a GROUP BY film_id) SELECT f.id, b.m FROM content.film f LEFT JOIN b ON b.film_id = f.id",
  ),
  query(
    "CTE twice, materialized",
    "id",
    "WITH r AS MATERIALIZED (SELECT film_id, count(*) AS n FROM content.rating GROUP BY film_id) SELECT f.id, own.n, parent.n AS of_parent FROM content.film f LEFT JOIN r own ON own.film_id = f.id LEFT JOIN r parent ON parent.film_id = f.parent_id",
  ),
  query(
    "exists",
    "id",
    "SELECT f.id FROM content.film f WHERE EXISTS (SELECT FROM content.flag x WHERE x.film_id = f.id AND x.kind = 'a')",
  ),
  query(
    "not exists",
    "id",
    "SELECT f.id FROM content.film f WHERE NOT EXISTS (SELECT FROM content.flag x WHERE x.film_id = f.id)",
  ),
  query(
    "anti-join by left join",
    "id",
    "SELECT f.id FROM content.film f LEFT JOIN content.flag x ON x.film_id = f.id WHERE x.film_id IS NULL",
  ),
  query(
    "in",
    "id",
    "SELECT f.id FROM content.film f WHERE f.studio_id IN (SELECT s.id FROM content.studio s WHERE s.name > 'b')",
  ),
  query(
    "nested in",
    "id",
    "SELECT f.id FROM content.film f WHERE f.studio_id IN (SELECT s.id FROM content.studio s WHERE s.country_id IN (SELECT c.id FROM content.country c WHERE c.name > 'b'))",
  ),
  query(
    "in, of groups",
    "id",
    "SELECT f.id FROM content.film f WHERE f.id IN (SELECT r.film_id FROM content.rating r GROUP BY r.film_id HAVING count(*) > 1) OR f.title = 'a'",
  ),
  query(
    "scalar subqueries",
    "id",
    "SELECT f.id, (SELECT count(*) FROM content.rating r WHERE r.film_id = f.id) AS n, (SELECT max(s.name) FROM content.studio s WHERE s.id = f.studio_id) AS studio FROM content.film f",
  ),
  query(
    "two-level correlation",
    "id",
    "SELECT f.id, (SELECT count(*) FROM content.role ro WHERE ro.film_id = f.id AND EXISTS (SELECT FROM content.person p WHERE p.id = ro.person_id AND p.country_id = f.country_id)) AS n FROM content.film f",
  ),
  query(
    "not in, of the row's own",
    "id",
    "SELECT f.id FROM content.film f WHERE 'a' NOT IN (SELECT x.kind FROM content.flag x WHERE x.film_id = f.id)",
  ),
  query("self-join", "id", "SELECT f.id, p.title FROM content.film f LEFT JOIN content.film p ON p.id = f.parent_id"),
  query(
    "two levels of parents",
    "id",
    "SELECT f.id, g.title FROM content.film f JOIN content.film p ON p.id = f.parent_id LEFT JOIN content.film g ON g.id = p.parent_id",
  ),
  query(
    "inequality and equality",
    "id",
    "SELECT a.id, count(b.id) AS lower FROM content.rating a LEFT JOIN content.rating b ON b.film_id = a.film_id AND b.score < a.score GROUP BY a.id",
  ),
  query("union all", "id", "SELECT id, title AS name FROM content.film UNION ALL SELECT id, name FROM content.studio"),
  query("union", "id", "SELECT country_id AS id FROM content.studio UNION SELECT country_id FROM content.person"),
  query("except", "id", "SELECT id, title FROM content.film EXCEPT SELECT film_id, kind FROM content.flag"),
  query("intersect", "id", "SELECT id, title FROM content.film INTERSECT SELECT film_id, kind FROM content.flag"),
  query(
    "kinds in a union",
    "kind,id",
    "SELECT 'film' AS kind, f.id, s.name FROM content.film f JOIN content.studio s ON s.id = f.studio_id UNION ALL SELECT 'person', p.id, c.name FROM content.person p LEFT JOIN content.country c ON c.id = p.country_id",
  ),
  query(
    "group by over union all",
    "id",
    "SELECT u.id, count(*) AS n FROM (SELECT film_id AS id FROM content.rating UNION ALL SELECT film_id FROM content.role UNION ALL SELECT film_id FROM content.flag) u GROUP BY u.id",
  ),
  query(
    "join of a union",
    "id",
    "SELECT c.id, c.name, count(u.x) AS n FROM content.country c LEFT JOIN (SELECT s.country_id, s.name AS x FROM content.studio s UNION SELECT p.country_id, p.name FROM content.person p) u ON u.country_id = c.id GROUP BY c.id, c.name",
  ),
  query(
    "distinct on the key",
    "film_id",
    "SELECT DISTINCT ON (r.film_id) r.film_id, r.score, r.person_id FROM content.rating r ORDER BY r.film_id, r.score DESC, r.person_id",
  ),
  query("distinct", "country_id", "SELECT DISTINCT s.country_id, s.name FROM content.studio s"),
  query(
    "window by the key",
    "film_id",
    "SELECT r.film_id, r.score, rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS place FROM content.rating r",
  ),
  query(
    "rank within another column",
    "id",
    "SELECT r.id, r.film_id, rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS place FROM content.rating r",
  ),
  query(
    "two windows",
    "id",
    "SELECT r.id, rank() OVER (PARTITION BY r.film_id ORDER BY r.score) AS a, rank() OVER (PARTITION BY r.person_id ORDER BY r.score) AS b FROM content.rating r",
  ),
  query(
    "distinct on another column",
    "id",
    "SELECT DISTINCT ON (r.film_id) r.id, r.film_id, r.score FROM content.rating r ORDER BY r.film_id, r.score DESC, r.id, r.person_id",
  ),
  query(
    "window in a subquery",
    "id",
    "SELECT f.id, r.score FROM content.film f JOIN (SELECT film_id, score, row_number() OVER (PARTITION BY film_id ORDER BY score DESC) AS n FROM content.rating) r ON r.film_id = f.id AND r.n = 1",
  ),
  query(
    "window over a join, then joined",
    "name",
    "SELECT p.name, count(*) AS n FROM (SELECT ro.person_id, rank() OVER (PARTITION BY f.studio_id ORDER BY f.title) AS place FROM content.role ro JOIN content.film f ON f.id = ro.film_id) x JOIN content.person p ON p.id = x.person_id WHERE x.place = 1 GROUP BY p.name",
  ),
  query(
    "full join with coalesce",
    "id",
    "SELECT COALESCE(a.film_id, b.film_id) AS id, a.n, b.m FROM (SELECT film_id, count(*) AS n FROM content.rating GROUP BY film_id) a FULL JOIN (SELECT film_id, count(*) AS m FROM content.flag GROUP BY film_id) b ON a.film_id = b.film_id",
  ),
  query(
    "full join using",
    "film_id",
    "SELECT film_id, a.kind, b.score FROM content.role a FULL JOIN content.rating b USING (film_id)",
  ),
  query(
    "full join using, twice",
    "film_id",
    "SELECT film_id, a.kind, b.score, c.kind AS flag FROM content.role a FULL JOIN content.rating b USING (film_id) FULL JOIN content.flag c USING (film_id)",
  ),
  query(
    "values",
    "id",
    "SELECT v.id, v.name, count(f.id) AS n FROM (VALUES (1, 'x'), (2, 'y'), (3, NULL)) v(id, name) LEFT JOIN content.film f ON f.country_id = v.id GROUP BY v.id, v.name",
  ),
  query(
    "left join using",
    "film_id",
    "SELECT film_id, a.kind, b.score FROM content.role a LEFT JOIN content.rating b USING (film_id, person_id)",
  ),
  query(
    "unnest in the key",
    "id,tag",
    "SELECT f.id, u.tag FROM content.film f CROSS JOIN LATERAL unnest(f.tags) u(tag)",
  ),
  query(
    "unnest on the way",
    "tag",
    "SELECT u.tag, count(*) AS n, sum(r.score) AS s FROM content.film f CROSS JOIN LATERAL unnest(f.tags) u(tag) LEFT JOIN content.rating r ON r.film_id = f.id GROUP BY u.tag",
  ),
  query(
    "spine",
    "n",
    "SELECT g.n, count(r.id) AS c FROM generate_series(1, 12) g(n) LEFT JOIN content.rating r ON r.film_id = g.n GROUP BY g.n",
  ),
  query(
    "one column or another",
    "id",
    "SELECT f.id, s.name FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id AND s.name > 'a' OR s.country_id = f.country_id",
  ),
  query(
    "one of two columns",
    "id",
    "SELECT f.id, count(*) AS n FROM content.film f JOIN content.studio s ON f.title = s.name JOIN content.country c ON c.id IN (f.country_id, s.country_id) GROUP BY f.id",
  ),
  query(
    "a subquery by one column or another",
    "id",
    "SELECT p.id, (SELECT count(*) FROM content.rating r WHERE r.person_id = p.id OR r.film_id = p.country_id AND r.score IN (SELECT x.score FROM content.flag x WHERE x.film_id = r.film_id)) AS n FROM content.person p",
  ),
  query(
    "one partition or another",
    "id",
    "SELECT x.id, c.name FROM (SELECT r.id, r.film_id, r.person_id, rank() OVER (PARTITION BY r.score ORDER BY r.id) AS n FROM content.rating r) x JOIN content.country c ON c.id = x.film_id OR c.id = x.person_id",
  ),
  query(
    "every film, every number",
    "id,n",
    "SELECT f.id, g.n, count(r.id) AS c FROM content.film f CROSS JOIN generate_series(1, 3) g(n) LEFT JOIN content.rating r ON r.film_id = f.id AND r.score = g.n GROUP BY f.id, g.n",
  ),
  query(
    "every film, every label",
    "label,country_id",
    "SELECT v.label, f.country_id, count(*) FILTER (WHERE f.title < v.label) AS n FROM content.film f CROSS JOIN (VALUES ('a'), ('b'), ('c')) v(label) GROUP BY v.label, f.country_id",
  ),
  query(
    "view",
    "id",
    "SELECT f.id, s.votes, s.score FROM content.film f LEFT JOIN content.film_score s ON s.film_id = f.id",
  ),
  query(
    "views of views",
    "person_id,film_id",
    "SELECT c.person_id, c.film_id, c.name, c.votes, g.genre FROM content.credits c LEFT JOIN content.genre_of_film g ON g.film_id = c.film_id",
  ),
  query(
    "null partitions",
    "id",
    "SELECT s.id, s.name, count(*) OVER (PARTITION BY s.country_id) AS n FROM content.studio s",
  ),
  query(
    "partitions by two columns, one of them an array",
    "id",
    "SELECT f.id, count(*) OVER (PARTITION BY f.tags, f.country_id) AS n FROM content.film f",
  ),
  query(
    "rank of groups",
    "id",
    "SELECT s.id, s.country_id, rank() OVER (PARTITION BY s.country_id ORDER BY count(f.id)) AS place FROM content.studio s LEFT JOIN content.film f ON f.studio_id = s.id GROUP BY s.country_id, s.id",
  ),
  query(
    "window of a subquery's value",
    "id",
    "SELECT f.id, max((SELECT count(*) FROM content.rating r WHERE r.film_id = f.id)) OVER (PARTITION BY f.studio_id) AS top FROM content.film f",
  ),
  query(
    "optional window",
    "id",
    "SELECT c.id, x.id AS film, x.place FROM content.country c LEFT JOIN (SELECT f.id, f.country_id, rank() OVER (PARTITION BY f.studio_id ORDER BY f.title) AS place FROM content.film f) x ON x.country_id = c.id",
  ),
  query(
    "aggregate filter with a subquery",
    "film_id",
    "SELECT r.film_id, count(*) FILTER (WHERE NOT EXISTS (SELECT FROM content.flag x WHERE x.film_id = r.film_id AND x.score = r.score)) AS n FROM content.rating r GROUP BY r.film_id",
  ),
  query(
    "optional beyond optional",
    "id",
    "SELECT f.id, s.name, p.name AS person FROM content.film f LEFT JOIN content.studio s ON s.id = f.studio_id LEFT JOIN content.person p ON p.country_id = s.country_id AND p.name = f.title",
  ),
  query(
    "same as, with nulls",
    "id",
    "SELECT f.id, count(s.id) AS n FROM content.film f LEFT JOIN content.studio s ON NOT (s.country_id IS DISTINCT FROM f.country_id) GROUP BY f.id",
  ),
  query(
    "subquery in an inner ON",
    "id",
    "SELECT f.id, s.name FROM content.film f JOIN content.studio s ON s.id = f.studio_id AND EXISTS (SELECT FROM content.person p WHERE p.country_id = s.country_id)",
  ),
  query(
    "grouped in grouped",
    "country_id",
    "SELECT x.country_id, max(x.n) AS n FROM (SELECT s.country_id, s.id, count(f.id) AS n FROM content.studio s LEFT JOIN content.film f ON f.studio_id = s.id GROUP BY s.country_id, s.id) x GROUP BY x.country_id",
  ),
  query(
    "path through a grouped query",
    "id",
    "SELECT c.id, sum(x.score) AS s FROM content.country c JOIN (SELECT f.id, f.country_id FROM content.film f GROUP BY f.id, f.country_id) y ON y.country_id = c.id JOIN content.rating x ON x.film_id = y.id GROUP BY c.id",
  ),
  query(
    "aggregate of subqueries over two optional sides",
    "id",
    "SELECT p.id, string_agg(DISTINCT g.name || ': ' || (SELECT string_agg(f.title, ',' ORDER BY f.title) FROM content.film f JOIN content.film_genre x ON x.film_id = f.id JOIN content.role y ON y.film_id = f.id WHERE x.genre_id = g.id AND y.person_id = p.id), ';' ) AS info FROM content.person p LEFT JOIN content.role ro ON ro.person_id = p.id LEFT JOIN content.film_genre fg ON fg.film_id = ro.film_id LEFT JOIN content.genre g ON g.id = fg.genre_id GROUP BY p.id",
  ),
  query(
    "key made of two tables",
    "place",
    "SELECT s.name || ',' || c.name AS place, count(*) AS n FROM content.rating r JOIN content.film f ON f.id = r.film_id JOIN content.studio s ON s.id = f.studio_id JOIN content.country c ON c.id = s.country_id GROUP BY s.name, c.name",
  ),
  query(
    "staging, four levels deep",
    "person_id",
    "WITH ratings AS (SELECT id, film_id, person_id, score FROM content.rating), films AS (SELECT id AS film_id, studio_id FROM content.film), rated AS (SELECT r.person_id, r.score, f.studio_id, row_number() OVER (PARTITION BY r.person_id ORDER BY r.score, f.studio_id) AS n FROM ratings r LEFT JOIN films f USING (film_id)), people AS (SELECT person_id, count(*) AS n, max(score) FILTER (WHERE n = 1) AS first FROM rated GROUP BY person_id) SELECT p.person_id, p.n, p.first, x.name FROM people p LEFT JOIN content.person x ON x.id = p.person_id",
  ),
  query(
    "subquery beside an aggregate of no rows",
    "id,film_id",
    "SELECT p.id, f.id AS film_id, (SELECT count(*) + (SELECT count(*) FROM content.flag x WHERE x.film_id = f.id) FROM content.rating r WHERE r.film_id = f.id AND r.person_id = p.id) AS n FROM content.film f JOIN content.studio s ON s.id = f.studio_id JOIN content.person p ON p.country_id = s.country_id",
  ),
  query(
    "windows that name one another",
    "id",
    "SELECT f.id, rank() OVER (w ORDER BY f.studio_id) AS a, count(*) OVER w3 AS b FROM content.film f WINDOW w AS (PARTITION BY f.country_id), w2 AS (w), w3 AS (w2 ORDER BY f.title)",
  ),
  query(
    "left join in an optional side",
    "id",
    "SELECT c.id, s.name, f.title FROM content.country c LEFT JOIN (content.studio s LEFT JOIN content.film f ON f.studio_id = s.id) ON s.country_id = c.id",
  ),
  query(
    "lateral in an optional side",
    "id",
    "SELECT c.id, s.name, l.n FROM content.country c LEFT JOIN (content.studio s CROSS JOIN LATERAL (SELECT count(*) AS n FROM content.film f WHERE f.studio_id = s.id) l) ON s.country_id = c.id AND l.n > 0",
  ),
  query(
    "union in a subquery of an expression",
    "id",
    "SELECT f.id FROM content.film f WHERE EXISTS (SELECT r.score FROM content.rating r WHERE r.film_id = f.id INTERSECT SELECT x.score FROM content.flag x WHERE x.film_id = f.id)",
  ),
  query(
    "except all in an optional side",
    "id",
    "SELECT f.id, u.kind FROM content.film f LEFT JOIN (SELECT film_id, kind FROM content.role EXCEPT ALL SELECT film_id, kind FROM content.flag) u ON u.film_id = f.id",
  ),
];
