-- What a pipeline may do to its target, and how careful it is.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN add_columns        boolean NOT NULL DEFAULT false,
  ADD COLUMN allow_empty        boolean NOT NULL DEFAULT false,
  ADD COLUMN max_delete_percent integer NOT NULL DEFAULT 50 CHECK (max_delete_percent BETWEEN 0 AND 100),
  ADD COLUMN max_rejects        integer NOT NULL DEFAULT 100 CHECK (max_rejects >= 0),
  ADD COLUMN null_cursor        text NOT NULL DEFAULT 'reject' CHECK (null_cursor IN ('reject', 'exclude')),
  ADD COLUMN lookback_seconds   integer NOT NULL DEFAULT 0 CHECK (lookback_seconds >= 0);

ALTER TABLE etl.etl_state
  -- Which query, key and target the watermark belongs to; `fingerprint` is that of the unfinished load.
  ADD COLUMN watermark_fingerprint text,
  -- The horizon taken when the unfinished load began: it must not move when the load is paused and resumed.
  ADD COLUMN safe_point            text,
  -- For keys that are no stamps of time: a position that becomes the watermark once everything alive then has ended.
  ADD COLUMN candidate_value       text,
  ADD COLUMN candidate_id          text,
  ADD COLUMN candidate_at          text,
  ADD CONSTRAINT id_needs_a_value CHECK (last_processed_id IS NULL OR last_processed_value IS NOT NULL),
  ADD CONSTRAINT watermark_has_a_fingerprint
    CHECK (last_processed_value IS NULL OR watermark_fingerprint IS NOT NULL),
  ADD CONSTRAINT candidate_is_whole CHECK ((candidate_value IS NULL) = (candidate_at IS NULL));

ALTER TABLE etl.etl_runs
  ADD COLUMN data_path    text,
  ADD COLUMN strategy     text,
  -- Rows that a transform made out of nothing: a split row counts once as read, and its further parts here.
  ADD COLUMN rows_added   bigint NOT NULL DEFAULT 0 CHECK (rows_added >= 0),
  ADD COLUMN bytes        bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),
  ADD COLUMN read_ms      bigint NOT NULL DEFAULT 0,
  ADD COLUMN transform_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN write_ms     bigint NOT NULL DEFAULT 0,
  DROP CONSTRAINT rows_balance,
  ADD CONSTRAINT rows_balance CHECK (
    rows_read + rows_added = rows_written + rows_unchanged + rows_deduplicated + rows_rejected + rows_dropped
    AND least(rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped) >= 0
  );
GRANT UPDATE (rows_added, bytes, read_ms, transform_ms, write_ms) ON etl.etl_runs TO vitrina_writer;

-- vitrina_loader moves rows inside one database: it becomes the reader to read and the writer to write, and can do
-- nothing as itself.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'vitrina_loader') THEN
    BEGIN
      CREATE ROLE vitrina_loader NOLOGIN NOINHERIT NOCREATEDB NOCREATEROLE NOREPLICATION;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL; -- made by somebody else this very moment
    END;
  END IF;
  IF NOT pg_catalog.pg_has_role('vitrina_loader', 'vitrina_reader', 'MEMBER') THEN
    GRANT vitrina_reader TO vitrina_loader;
  END IF;
  IF NOT pg_catalog.pg_has_role('vitrina_loader', 'vitrina_writer', 'MEMBER') THEN
    GRANT vitrina_writer TO vitrina_loader;
  END IF;
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO vitrina_writer, vitrina_loader', current_database());
END
$$;
