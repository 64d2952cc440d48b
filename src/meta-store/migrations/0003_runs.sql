CREATE TABLE etl.etl_runners (
  id           uuid PRIMARY KEY,
  hostname     text NOT NULL,
  pid          integer NOT NULL,
  version      text NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  stopped_at   timestamptz
);

CREATE TABLE etl.etl_runs (
  id                uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  pipeline_id       uuid NOT NULL REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  attempt           integer NOT NULL CHECK (attempt >= 1),
  status            text NOT NULL CHECK (status IN ('RUNNING', 'SUCCESS', 'FAILED', 'PAUSED')),
  trigger           text NOT NULL CHECK (trigger IN ('api', 'schedule', 'recovery')),
  config_version    integer NOT NULL,
  runner_id         uuid NOT NULL,
  lease_epoch       bigint NOT NULL,
  started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at       timestamptz,
  rows_read         bigint NOT NULL DEFAULT 0,
  rows_written      bigint NOT NULL DEFAULT 0,
  rows_unchanged    bigint NOT NULL DEFAULT 0,
  rows_deduplicated bigint NOT NULL DEFAULT 0,
  rows_rejected     bigint NOT NULL DEFAULT 0,
  rows_dropped      bigint NOT NULL DEFAULT 0,
  rows_deleted      bigint NOT NULL DEFAULT 0 CHECK (rows_deleted >= 0),
  batches           bigint NOT NULL DEFAULT 0 CHECK (batches >= 0),
  error_code        text,
  error             text CHECK (length(error) <= 4000),
  CONSTRAINT finished_when_ended CHECK ((status = 'RUNNING') = (finished_at IS NULL)),
  CONSTRAINT failed_says_why CHECK ((status = 'FAILED') = (error IS NOT NULL AND error_code IS NOT NULL)),
  CONSTRAINT rows_balance CHECK (
    rows_read = rows_written + rows_unchanged + rows_deduplicated + rows_rejected + rows_dropped
    AND least(rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped) >= 0
  )
);
CREATE INDEX etl_runs_newest ON etl.etl_runs (pipeline_id, started_at DESC, id DESC);
CREATE UNIQUE INDEX etl_runs_one_at_a_time ON etl.etl_runs (pipeline_id) WHERE status = 'RUNNING';

-- Where a pipeline is. Values are the exact text of the source's columns.
CREATE TABLE etl.etl_state (
  pipeline_id          uuid PRIMARY KEY REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  last_processed_value text,
  last_processed_id    text,
  -- The ordering columns of the last committed row of a load that has not ended; null otherwise.
  scan_position        text[],
  batch_no             bigint NOT NULL DEFAULT 0 CHECK (batch_no >= 0),
  fingerprint          text,
  updated_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT position_has_a_fingerprint CHECK (scan_position IS NULL OR fingerprint IS NOT NULL)
);

CREATE TABLE etl.etl_rejects (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline_id uuid NOT NULL REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  run_id      uuid NOT NULL REFERENCES etl.etl_runs ON DELETE CASCADE,
  row_key     jsonb,
  row         jsonb NOT NULL,
  error_code  text NOT NULL,
  error       text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX etl_rejects_newest ON etl.etl_rejects (pipeline_id, id DESC);

-- Least privilege: the meta role keeps the tables; the writer may only do what a batch commit needs.
GRANT SELECT, INSERT, UPDATE, DELETE ON etl.etl_pipelines, etl.etl_pipeline_tasks TO vitrina_meta;
GRANT SELECT, INSERT ON etl.etl_pipeline_versions TO vitrina_meta;
GRANT SELECT, INSERT, UPDATE ON etl.etl_runners, etl.etl_runs TO vitrina_meta;
GRANT SELECT, INSERT, UPDATE, DELETE ON etl.etl_state, etl.etl_rejects TO vitrina_meta;
GRANT SELECT ON etl.schema_migrations TO vitrina_meta;

GRANT SELECT (id, status, enabled, batch_size, config_version, lease_owner, lease_epoch, lease_expires_at),
      UPDATE (lease_expires_at) ON etl.etl_pipelines TO vitrina_writer;
GRANT SELECT, UPDATE ON etl.etl_state TO vitrina_writer;
GRANT SELECT, UPDATE (rows_read, rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped,
  rows_deleted, batches) ON etl.etl_runs TO vitrina_writer;
GRANT INSERT ON etl.etl_rejects TO vitrina_writer;
