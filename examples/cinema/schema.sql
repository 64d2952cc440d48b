-- The source tables of the cinema demo.
--
-- Two schemas: `content` is the catalogue of an online cinema, `ugc` is what its users leave behind.
-- In production they may be in different databases, so nothing in `ugc` references `content`.
-- The script may be run any number of times.

CREATE SCHEMA IF NOT EXISTS content;
CREATE SCHEMA IF NOT EXISTS ugc;

-- The catalogue -------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS content.film_work (
  id            uuid          PRIMARY KEY DEFAULT gen_random_uuid(),
  title         text          NOT NULL,
  description   text,
  creation_date date,
  rating        numeric(3, 1) CHECK (rating BETWEEN 0 AND 10),
  type          text          NOT NULL CHECK (type IN ('movie', 'tv_show')),
  created       timestamptz   NOT NULL DEFAULT now(),
  modified      timestamptz   NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS content.genre (
  id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  name        text        NOT NULL UNIQUE,
  description text,
  created     timestamptz NOT NULL DEFAULT now(),
  modified    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS content.genre_film_work (
  id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  film_work_id uuid        NOT NULL REFERENCES content.film_work (id) ON DELETE CASCADE,
  genre_id     uuid        NOT NULL REFERENCES content.genre (id) ON DELETE CASCADE,
  created      timestamptz NOT NULL DEFAULT now(),
  UNIQUE (film_work_id, genre_id)
);

CREATE TABLE IF NOT EXISTS content.person (
  id        uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  full_name text        NOT NULL,
  created   timestamptz NOT NULL DEFAULT now(),
  modified  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS content.person_film_work (
  id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  film_work_id uuid        NOT NULL REFERENCES content.film_work (id) ON DELETE CASCADE,
  person_id    uuid        NOT NULL REFERENCES content.person (id) ON DELETE CASCADE,
  role         text        NOT NULL CHECK (role IN ('actor', 'director', 'writer')),
  created      timestamptz NOT NULL DEFAULT now(),
  UNIQUE (film_work_id, person_id, role)
);

-- An incremental pipeline reads in the order (modified, id): without these indexes each of its batches
-- would sort the whole table.
CREATE INDEX IF NOT EXISTS film_work_modified_id_idx ON content.film_work (modified, id);
CREATE INDEX IF NOT EXISTS genre_modified_id_idx ON content.genre (modified, id);
CREATE INDEX IF NOT EXISTS person_modified_id_idx ON content.person (modified, id);

-- The other direction of each link; film_work_id is the first column of the unique constraints above.
CREATE INDEX IF NOT EXISTS genre_film_work_genre_id_idx ON content.genre_film_work (genre_id);
CREATE INDEX IF NOT EXISTS person_film_work_person_id_idx ON content.person_film_work (person_id);

-- What users do -------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS ugc.ratings (
  id       uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id  uuid        NOT NULL,
  film_id  uuid        NOT NULL,
  rating   smallint    NOT NULL CHECK (rating BETWEEN 1 AND 10),
  created  timestamptz NOT NULL DEFAULT now(),
  modified timestamptz NOT NULL DEFAULT now(),
  UNIQUE (user_id, film_id)
);

CREATE INDEX IF NOT EXISTS ratings_film_id_idx ON ugc.ratings (film_id);
CREATE INDEX IF NOT EXISTS ratings_modified_id_idx ON ugc.ratings (modified, id);
