-- The tables of the demo's marts, for one column that no query returns: updated_at, when a row was last written.
--
-- A run writes the columns of its query and leaves the others alone, and a row that did not change is not written at
-- all. So the default and the trigger set it for exactly the rows that are new or changed. Without these tables the first
-- run would create them itself, from the query's columns alone.

CREATE OR REPLACE FUNCTION analytics.set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.updated_at := pg_catalog.now();
  RETURN NEW;
END
$$;

CREATE TABLE analytics.film_dim (
  film_id       uuid          PRIMARY KEY,
  title         text,
  description   text,
  type          text,
  creation_date date,
  rating        numeric(3, 1),
  genres        text[],
  actors        text[],
  directors     text[],
  writers       text[],
  created       timestamptz,
  modified      timestamptz,
  updated_at    timestamptz   NOT NULL DEFAULT now()
);
CREATE TRIGGER set_updated_at BEFORE UPDATE ON analytics.film_dim
  FOR EACH ROW EXECUTE FUNCTION analytics.set_updated_at();

CREATE TABLE analytics.film_rating_agg (
  film_id       uuid          PRIMARY KEY,
  avg_rating    numeric(4, 2),
  rating_count  bigint,
  last_rated_at timestamptz,
  updated_at    timestamptz   NOT NULL DEFAULT now()
);
CREATE TRIGGER set_updated_at BEFORE UPDATE ON analytics.film_rating_agg
  FOR EACH ROW EXECUTE FUNCTION analytics.set_updated_at();

CREATE TABLE analytics.genre_dim (
  genre_id    uuid        PRIMARY KEY,
  name        text,
  description text,
  film_count  bigint,
  updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER set_updated_at BEFORE UPDATE ON analytics.genre_dim
  FOR EACH ROW EXECUTE FUNCTION analytics.set_updated_at();

CREATE TABLE analytics.film_shelf (
  film_id    uuid        PRIMARY KEY,
  title      text,
  type       text,
  title_sort text,
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER set_updated_at BEFORE UPDATE ON analytics.film_shelf
  FOR EACH ROW EXECUTE FUNCTION analytics.set_updated_at();

CREATE TABLE analytics.viewer_segments (
  user_id       uuid          PRIMARY KEY,
  rating_count  bigint,
  avg_rating    numeric(4, 2),
  last_rated_at timestamptz,
  segment       text,
  updated_at    timestamptz   NOT NULL DEFAULT now()
);
CREATE TRIGGER set_updated_at BEFORE UPDATE ON analytics.viewer_segments
  FOR EACH ROW EXECUTE FUNCTION analytics.set_updated_at();
