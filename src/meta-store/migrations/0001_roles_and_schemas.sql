-- The three roles of a running Vitrina. They get their passwords from `vitrina migrate`, not from this file.
--   vitrina_reader  reads the source schemas, nothing else, and only in read-only transactions
--   vitrina_writer  writes the marts, and the checkpoint beside them
--   vitrina_meta    keeps the meta-store; cannot touch sources or marts
-- Roles belong to the whole server: another database of the same server may have made them already.
DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['vitrina_reader', 'vitrina_writer', 'vitrina_meta'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN NOCREATEDB NOCREATEROLE NOREPLICATION', role_name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL; -- made by somebody else this very moment
      END;
    END IF;
  END LOOP;

  IF NOT pg_catalog.pg_has_role('vitrina_reader', 'pg_read_all_stats', 'USAGE') THEN
    BEGIN
      -- Lets the reader see transactions in flight, so that rows committed late are not missed.
      GRANT pg_read_all_stats TO vitrina_reader;
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE NOTICE 'pg_read_all_stats could not be granted to vitrina_reader; grant it by hand for incremental loads';
    END;
  END IF;
END
$$;

DO $$
BEGIN
  EXECUTE format('ALTER ROLE vitrina_reader IN DATABASE %I SET default_transaction_read_only = on', current_database());
  EXECUTE format('ALTER ROLE vitrina_reader IN DATABASE %I SET search_path = pg_catalog', current_database());
  EXECUTE format('ALTER ROLE vitrina_writer IN DATABASE %I SET search_path = pg_catalog', current_database());
  EXECUTE format('ALTER ROLE vitrina_meta IN DATABASE %I SET search_path = pg_catalog', current_database());
END
$$;

CREATE SCHEMA IF NOT EXISTS analytics;
GRANT USAGE, CREATE ON SCHEMA analytics TO vitrina_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA analytics TO vitrina_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA analytics GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO vitrina_writer;

GRANT USAGE ON SCHEMA etl TO vitrina_meta, vitrina_writer;
