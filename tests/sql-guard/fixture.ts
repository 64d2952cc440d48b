import { inject } from "vitest";
import type { SqlSession } from "../../src/domain/sql-session.ts";
import { type Client, connectForData } from "../../src/postgres/connection.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/** The allowed schemas of the corpus. */
export const RULES = { allowedSchemas: ["content", "ugc"] };

/** What the corpus speaks of: two readable schemas, one that is not, and every kind of door between them. */
const SCHEMA = `
  CREATE SCHEMA content;
  CREATE SCHEMA ugc;
  CREATE SCHEMA auth;
  CREATE SCHEMA extra;

  CREATE TYPE content.mood AS ENUM ('calm', 'tense');
  CREATE TYPE content.hue AS ENUM ('light', 'dark');
  CREATE DOMAIN content.score AS numeric(4, 2) CHECK (VALUE BETWEEN 0 AND 10);
  CREATE TABLE content.film_work (
    id uuid PRIMARY KEY, title text NOT NULL, description text, creation_date date, rating numeric(4, 2),
    type text NOT NULL DEFAULT 'movie', mood content.mood, best content.score, tags text[], meta jsonb,
    modified timestamptz NOT NULL DEFAULT now(), has_subtitles boolean, "end" text);
  CREATE TABLE content.paint (hue content.hue);
  CREATE TABLE content.genre (id uuid PRIMARY KEY, name text NOT NULL, parent_id uuid);
  CREATE TABLE content.genre_film_work (film_work_id uuid, genre_id uuid, PRIMARY KEY (film_work_id, genre_id));
  CREATE TABLE ugc.ratings (film_id uuid, user_id uuid, rating numeric, updated_at timestamptz);
  CREATE TABLE auth.users (login text, password_hash text, film_id uuid);
  CREATE TABLE public.victim (id integer);
  CREATE SEQUENCE content.seq1;

  INSERT INTO content.film_work (id, title, rating, creation_date, tags, meta)
    SELECT md5('film ' || n)::uuid, 'Film ' || n, n % 10, '2000-01-01'::date + n, ARRAY['a', 'b'], jsonb_build_object('n', n)
      FROM generate_series(1, 50) AS n;
  INSERT INTO content.genre SELECT md5('genre ' || n)::uuid, 'Genre ' || n, NULL FROM generate_series(1, 5) AS n;
  INSERT INTO ugc.ratings
    SELECT md5('film ' || n % 50 + 1)::uuid, md5('user ' || n)::uuid, n % 11, now() FROM generate_series(1, 200) AS n;
  INSERT INTO auth.users VALUES ('root', 's3cret', NULL);
  INSERT INTO public.victim VALUES (1);

  CREATE VIEW content.films AS SELECT id, upper(title) AS title, rating FROM content.film_work;
  CREATE VIEW content.best_films AS SELECT * FROM content.films WHERE rating > 8;
  CREATE VIEW content.leaky AS SELECT login, password_hash FROM auth.users;
  CREATE VIEW content.leaky_deep AS SELECT f.title, l.login FROM content.films f CROSS JOIN content.leaky l;
  CREATE VIEW content.leaky_invoker WITH (security_invoker = true) AS SELECT login FROM auth.users;
  CREATE VIEW content.leaky_sub AS SELECT id, (SELECT max(login) FROM auth.users) AS login FROM content.film_work;
  CREATE VIEW content.settings AS SELECT name, setting FROM pg_settings;
  CREATE VIEW content.sleepy AS SELECT id, pg_sleep(0) IS NULL AS slept FROM content.film_work;
  CREATE MATERIALIZED VIEW content.monthly AS
    SELECT date_trunc('month', modified) AS month, count(*) AS n, random() AS noise FROM content.film_work GROUP BY 1;
  CREATE MATERIALIZED VIEW content.kept_logins AS SELECT login FROM auth.users;

  CREATE TABLE content.event (id integer, at date) PARTITION BY RANGE (at);
  CREATE TABLE content.event_2020 PARTITION OF content.event FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
  CREATE TABLE content.person (name text);
  CREATE TABLE auth.staff (salary integer) INHERITS (content.person);

  CREATE FUNCTION content.secdef_del() RETURNS integer LANGUAGE sql VOLATILE SECURITY DEFINER
    AS 'DELETE FROM public.victim; SELECT 1';
  CREATE FUNCTION content.lying_stable() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT max(password_hash) FROM auth.users';
  CREATE FUNCTION content.lying_immutable(integer, integer) RETURNS text LANGUAGE sql IMMUTABLE SECURITY DEFINER
    AS 'SELECT max(password_hash) FROM auth.users';
  CREATE FUNCTION content.row_secret(content.film_work) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT max(password_hash) FROM auth.users';
  CREATE OPERATOR content.### (LEFTARG = integer, RIGHTARG = integer, FUNCTION = content.lying_immutable);
  CREATE VIEW content.by_operator AS SELECT 1 OPERATOR(content.###) 2 AS secret;
  CREATE VIEW content.by_function AS SELECT content.lying_stable() AS secret;

  CREATE FUNCTION content.hue_secret(content.hue) RETURNS integer LANGUAGE sql IMMUTABLE SECURITY DEFINER
    AS 'SELECT length(max(password_hash)) FROM auth.users';
  CREATE CAST (content.hue AS integer) WITH FUNCTION content.hue_secret (content.hue) AS IMPLICIT;
  CREATE TYPE content.heat AS ENUM ('cold', 'hot');
  CREATE TYPE content.pair AS (name text, heat content.heat);
  CREATE TABLE content.weather (id integer, heat content.heat, heats content.heat[], pair content.pair);
  INSERT INTO content.weather VALUES (1, 'cold', '{cold}', '(a,hot)'), (2, 'hot', '{hot}', '(b,cold)');
  CREATE FUNCTION content.heat_json(content.heat) RETURNS json LANGUAGE sql IMMUTABLE SECURITY DEFINER
    AS 'SELECT to_json(max(password_hash)) FROM auth.users';
  CREATE CAST (content.heat AS json) WITH FUNCTION content.heat_json (content.heat);

  CREATE TYPE content.size AS ENUM ('small', 'large');
  CREATE TABLE content.shoe (id integer, size content.size);
  INSERT INTO content.shoe VALUES (1, 'small'), (2, 'large');
  CREATE FUNCTION content.size_cmp(content.size, content.size) RETURNS integer LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    AS 'BEGIN RETURN (SELECT length(max(password_hash)) FROM auth.users); END';
  CREATE FUNCTION content.size_lt(content.size, content.size) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
  CREATE OPERATOR content.<<< (LEFTARG = content.size, RIGHTARG = content.size, FUNCTION = content.size_lt);
  CREATE OPERATOR CLASS content.size_ops DEFAULT FOR TYPE content.size USING btree AS
    OPERATOR 1 content.<<<, FUNCTION 1 content.size_cmp (content.size, content.size);

  CREATE FUNCTION content.is_code(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    AS 'BEGIN RETURN (SELECT count(*) > 0 FROM auth.users); END';
  CREATE DOMAIN content.code AS text CHECK (content.is_code(VALUE));
  CREATE TYPE content.coded AS (code content.code);
  CREATE TABLE content.coupon (id integer, code content.code);
  INSERT INTO content.coupon VALUES (1, 'a');

  CREATE FUNCTION content.spy(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN IF session_user = ''vitrina_reader'' THEN RAISE EXCEPTION ''ran as %'', current_user; END IF; RETURN true; END';
  CREATE FUNCTION content.spy_inside(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT content.spy(''x'')';
  CREATE FUNCTION content.spy_atomic(text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN content.spy('x');
  CREATE OPERATOR content.@@@ (RIGHTARG = text, FUNCTION = content.spy);
  CREATE FUNCTION content.plain(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(btrim($1))';
  CREATE TABLE content.spied_index (id integer, t text);
  CREATE INDEX ON content.spied_index (content.spy('x'));
  CREATE TABLE content.spied_condition (id integer, t text);
  CREATE INDEX ON content.spied_condition (id) WHERE content.spy(coalesce('x', t));
  CREATE TABLE content.spied_null (id integer, t text);
  CREATE INDEX ON content.spied_null (id) WHERE content.spy(t || NULL);
  CREATE TABLE content.spied_statistics (id integer, t text);
  CREATE STATISTICS content.spying ON (content.spy('x')), id FROM content.spied_statistics;
  CREATE TABLE content.spied_parent (id integer, t text);
  CREATE TABLE content.spied_child (CHECK (content.spy('x'))) INHERITS (content.spied_parent);
  CREATE TABLE content.spied_inlined (id integer, t text);
  CREATE INDEX ON content.spied_inlined (content.spy_inside(t));
  CREATE TABLE content.spied_atomic (id integer, t text);
  CREATE INDEX ON content.spied_atomic (content.spy_atomic(t));
  CREATE TABLE content.spied_operator (id integer, t text);
  CREATE INDEX ON content.spied_operator ((OPERATOR(content.@@@) 'x'));
  CREATE TABLE content.spied_rows (id integer, t text);
  ALTER TABLE content.spied_rows ENABLE ROW LEVEL SECURITY;
  CREATE POLICY spying ON content.spied_rows USING (content.spy(t));
  INSERT INTO content.spied_rows VALUES (1, 'a');
  CREATE VIEW content.spied_view AS SELECT id FROM content.spied_index;

  CREATE DOMAIN content.watched AS text CHECK (content.spy(VALUE));
  CREATE TYPE content.watched_row AS (id integer, word content.watched);
  CREATE TYPE content.tone AS ENUM ('low', 'high');
  CREATE FUNCTION content.tone_json(content.tone) RETURNS json LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM content.spy(''x''); RETURN ''1''; END';
  CREATE CAST (content.tone AS json) WITH FUNCTION content.tone_json (content.tone);
  CREATE TYPE content.grade AS ENUM ('poor', 'good');
  CREATE FUNCTION content.grade_cmp(content.grade, content.grade) RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM content.spy(''x''); RETURN 0; END';
  CREATE FUNCTION content.grade_lt(content.grade, content.grade) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
  CREATE OPERATOR content.<<< (LEFTARG = content.grade, RIGHTARG = content.grade, FUNCTION = content.grade_lt);
  CREATE OPERATOR CLASS content.grade_ops DEFAULT FOR TYPE content.grade USING btree AS
    OPERATOR 1 content.<<<, FUNCTION 1 content.grade_cmp (content.grade, content.grade);
  CREATE TABLE content.words (id integer, t text);
  INSERT INTO content.words VALUES (1, 'a');
  CREATE TABLE content.watched_words (id integer, word content.watched);
  INSERT INTO content.watched_words VALUES (1, 'a');
  CREATE VIEW content.read_words AS SELECT id, upper(word) AS word FROM content.watched_words;
  CREATE VIEW content.spied_domain AS SELECT id FROM content.words WHERE t::content.watched IS NOT NULL;
  CREATE VIEW content.spied_domains AS SELECT id FROM content.words WHERE ARRAY[t]::content.watched[] <> '{}';
  CREATE VIEW content.spied_json AS SELECT id FROM content.words WHERE to_json('low'::content.tone)::text <> '';
  CREATE VIEW content.spied_array AS
    SELECT id FROM content.words WHERE ARRAY['poor'::content.grade] >= ARRAY['good'::content.grade];
  CREATE VIEW content.spied_record AS
    SELECT x.id FROM content.words w, jsonb_to_record(jsonb_build_object('id', w.id, 'w', w.t)) AS x (id integer, w content.watched);
  CREATE VIEW content.spied_populate AS
    SELECT (jsonb_populate_record(NULL::content.watched_row, jsonb_build_object('id', w.id, 'word', w.t))).id FROM content.words w;
  CREATE VIEW content.spied_repopulate AS
    SELECT (jsonb_populate_record(w, '{"word": "b"}')).id FROM content.watched_words w;
  CREATE TABLE content.spied_fold (id integer);
  CREATE INDEX ON content.spied_fold (id) WHERE ARRAY['poor'::content.grade] < ARRAY['good'::content.grade];
  CREATE VIEW content.spy_glass AS SELECT content.spy('x') AS seen;
  CREATE DOMAIN content.scanned AS text CHECK (table_to_xml('content.spy_glass', true, false, '') IS NOT NULL);
  CREATE TABLE content.spied_policy_domain (id integer, t text);
  CREATE POLICY spying ON content.spied_policy_domain USING (t::content.watched IS NOT NULL);
  CREATE TABLE content.spied_policy_json (id integer, t text);
  CREATE POLICY spying ON content.spied_policy_json USING (to_json('low'::content.tone)::text <> t);
  CREATE TABLE content.spied_policy_view (id integer, t text);
  CREATE POLICY spying ON content.spied_policy_view USING (EXISTS (SELECT FROM content.spy_glass WHERE seen));
  CREATE TABLE content.spied_policy_text (id integer, t text);
  CREATE POLICY spying ON content.spied_policy_text USING (query_to_xml('SELECT content.spy(''x'')', true, false, '') IS NOT NULL);
  CREATE TABLE content.resetting (id integer, t text);
  CREATE POLICY spying ON content.resetting USING (set_config('search_path', 'content', false) <> '');
  CREATE TABLE content.own_rows (id integer, t text);
  CREATE POLICY mine ON content.own_rows
    USING (t = current_setting('app.tenant', true) OR pg_has_role(current_user, 'pg_monitor', 'MEMBER') IS NOT NULL);
  INSERT INTO content.spied_policy_domain VALUES (1, 'a');
  INSERT INTO content.spied_policy_json VALUES (1, 'a');
  INSERT INTO content.spied_policy_view VALUES (1, 'a');
  INSERT INTO content.spied_policy_text VALUES (1, 'a');
  ALTER TABLE content.spied_policy_domain ENABLE ROW LEVEL SECURITY;
  ALTER TABLE content.spied_policy_json ENABLE ROW LEVEL SECURITY;
  ALTER TABLE content.spied_policy_view ENABLE ROW LEVEL SECURITY;
  ALTER TABLE content.spied_policy_text ENABLE ROW LEVEL SECURITY;
  ALTER TABLE content.resetting ENABLE ROW LEVEL SECURITY;
  ALTER TABLE content.own_rows ENABLE ROW LEVEL SECURITY;
  CREATE TABLE content.ranked (id integer);
  INSERT INTO content.ranked VALUES (1), (2);
  CREATE FUNCTION content.ranked_cmp(content.ranked, content.ranked) RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM content.spy(''x''); RETURN 0; END';
  CREATE FUNCTION content.ranked_lt(content.ranked, content.ranked) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
  CREATE OPERATOR content.<<< (LEFTARG = content.ranked, RIGHTARG = content.ranked, FUNCTION = content.ranked_lt);
  CREATE OPERATOR CLASS content.ranked_ops DEFAULT FOR TYPE content.ranked USING btree AS
    OPERATOR 1 content.<<<, FUNCTION 1 content.ranked_cmp (content.ranked, content.ranked);
  CREATE TYPE content.pace AS ENUM ('slow', 'fast');
  CREATE TABLE content.paced (id integer, pace content.pace);
  INSERT INTO content.paced VALUES (1, 'slow'), (2, 'fast');
  CREATE FUNCTION content.paces_cmp(content.pace[], content.pace[]) RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM content.spy(''x''); RETURN 0; END';
  CREATE FUNCTION content.paces_lt(content.pace[], content.pace[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
  CREATE OPERATOR content.<<< (LEFTARG = content.pace[], RIGHTARG = content.pace[], FUNCTION = content.paces_lt);
  CREATE OPERATOR CLASS content.paces_ops DEFAULT FOR TYPE content.pace[] USING btree AS
    OPERATOR 1 content.<<<, FUNCTION 1 content.paces_cmp (content.pace[], content.pace[]);
  CREATE TABLE content.honest (id integer, t text CHECK (content.spy(lower(btrim(t, ' ')))), j jsonb);
  CREATE INDEX ON content.honest (content.spy((j ->> 'a') || 'x'));
  CREATE INDEX ON content.honest (content.plain(t)) WHERE content.spy(t);
  CREATE STATISTICS content.honest_statistics ON (content.spy(t)), id FROM content.honest;
  ALTER TABLE content.honest ENABLE ROW LEVEL SECURITY;
  CREATE POLICY for_others ON content.honest TO pg_monitor USING (content.spy(t));
  CREATE POLICY for_all ON content.honest USING (id > 0 AND current_user <> '');
  CREATE AGGREGATE content.secret_sum (integer) (SFUNC = int4_sum, STYPE = bigint);
`;

const GRANTS = `
  GRANT USAGE ON SCHEMA content, ugc TO vitrina_reader;
  GRANT SELECT ON ALL TABLES IN SCHEMA content, ugc TO vitrina_reader;
`;

/** Into a server of its own, which has none of the roles of Vitrina yet. */
export async function loadFixture(url: string): Promise<void> {
  const client = await connectForData({ url, applicationName: "vitrina test" });
  await client.query(`${SCHEMA}; CREATE ROLE vitrina_reader; ${GRANTS}`);
  await client.end();
}

export interface GuardedDatabase {
  readonly database: TestDatabase;
  /** The reader, by the extended protocol. */
  readonly reader: SqlSession;
  readonly client: Client;
  /** Changes when anything in the database was changed. */
  fingerprint(): Promise<string>;
  close(): Promise<void>;
}

export async function openGuardedDatabase(): Promise<GuardedDatabase> {
  const database = await createTestDatabase(inject("postgresUrl"));
  await database.query(SCHEMA);
  await database.query(GRANTS);
  const client = await connectForData({
    url: database.urls.reader,
    applicationName: "vitrina test",
    settings: { default_transaction_read_only: "on" },
  });
  return {
    database,
    client,
    reader: extendedSession(client),
    fingerprint: async () => JSON.stringify(await database.query(FINGERPRINT)),
    async close() {
      await client.end();
      await database.drop();
    },
  };
}

export function extendedSession(client: Client): SqlSession {
  return { query: (text, values) => client.query({ text, values, queryMode: "extended" } as never) };
}

const FINGERPRINT = `
  SELECT (SELECT md5(string_agg(f::text, ',' ORDER BY id)) FROM content.film_work f) AS films,
         (SELECT md5(string_agg(r::text, ',' ORDER BY user_id)) FROM ugc.ratings r) AS ratings,
         (SELECT md5(string_agg(u::text, ',')) FROM auth.users u) AS users,
         (SELECT count(*) FROM public.victim) AS victims,
         (SELECT last_value::text || is_called FROM content.seq1) AS sequence,
         (SELECT count(*) FROM pg_largeobject_metadata) AS large_objects,
         (SELECT count(*) FROM pg_class WHERE relpersistence <> 't') AS relations,
         (SELECT count(*) FROM pg_replication_slots) AS slots`;
