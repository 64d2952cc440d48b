-- A reconcile compares source and target of a pipeline. The API asks for it, a runner does it. It has a lease of its
-- own, because it needs no hold on the pipeline: it only reads, beside whatever else is going on.
CREATE TABLE etl.etl_reconciles (
  id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  pipeline_id      uuid NOT NULL REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  status           text NOT NULL DEFAULT 'WAITING'
                   CHECK (status IN ('WAITING', 'RUNNING', 'MATCH', 'DIFFERENT', 'INCONCLUSIVE', 'FAILED')),
  requested_by     text NOT NULL,
  requested_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  started_at       timestamptz,
  finished_at      timestamptz,
  -- The configuration that was compared, known when a runner begins.
  config_version   integer,
  runner_id        uuid,
  rows_compared    bigint NOT NULL DEFAULT 0 CHECK (rows_compared >= 0),
  report           jsonb,
  error_code       text,
  error            text CHECK (length(error) <= 4000),
  -- The epoch grows with every claim: it tells a late runner from the present one.
  lease_epoch      bigint NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0),
  lease_expires_at timestamptz,
  -- How many runners disappeared over it.
  losses           integer NOT NULL DEFAULT 0 CHECK (losses >= 0),
  CONSTRAINT running_means_leased CHECK (
    (status = 'RUNNING') = (lease_expires_at IS NOT NULL) AND (status <> 'RUNNING' OR runner_id IS NOT NULL)
  ),
  CONSTRAINT finished_when_ended CHECK ((status IN ('WAITING', 'RUNNING')) = (finished_at IS NULL)),
  CONSTRAINT judged_by_a_report CHECK (status NOT IN ('MATCH', 'DIFFERENT') OR report IS NOT NULL),
  CONSTRAINT inconclusive_says_why CHECK (status <> 'INCONCLUSIVE' OR report IS NOT NULL OR error IS NOT NULL),
  CONSTRAINT failed_says_why CHECK (status <> 'FAILED' OR (error IS NOT NULL AND error_code IS NOT NULL))
);
CREATE INDEX etl_reconciles_newest ON etl.etl_reconciles (pipeline_id, requested_at DESC, id DESC);
CREATE UNIQUE INDEX etl_reconciles_one_at_a_time ON etl.etl_reconciles (pipeline_id)
  WHERE status IN ('WAITING', 'RUNNING');
CREATE INDEX etl_reconciles_open ON etl.etl_reconciles (requested_at, id) WHERE status IN ('WAITING', 'RUNNING');

CREATE TRIGGER notify_runners AFTER INSERT OR UPDATE OF status ON etl.etl_reconciles
  FOR EACH ROW WHEN (NEW.status = 'WAITING') EXECUTE FUNCTION etl.notify_runners();

GRANT SELECT, INSERT, UPDATE ON etl.etl_reconciles TO vitrina_meta;

-- Rejects can be tried again: the next run reads the marked keys anew, and replaces or removes the marked rows.
ALTER TABLE etl.etl_rejects ADD COLUMN retry_requested_at timestamptz;
CREATE INDEX etl_rejects_to_retry ON etl.etl_rejects (pipeline_id, id) WHERE retry_requested_at IS NOT NULL;
-- In the transaction of a batch, together with the rows that are now written.
GRANT SELECT (id, pipeline_id), DELETE ON etl.etl_rejects TO vitrina_writer;

-- True when the run continued an unfinished load, so that its rejects belong together with those of the runs before;
-- null when the run ended before it began to load.
ALTER TABLE etl.etl_runs ADD COLUMN resumed boolean;

-- A third way with rows that have no incremental key: they are read in every run.
ALTER TABLE etl.etl_pipelines
  DROP CONSTRAINT etl_pipelines_null_cursor_check,
  ADD CONSTRAINT etl_pipelines_null_cursor_check CHECK (null_cursor IN ('reject', 'exclude', 'each_run'));
