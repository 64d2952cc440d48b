-- A run has a kind. Kinds that write share a lane, and those that only read have one of their own: a pipeline has at
-- most one run in each lane at a time. Every run is held by its own lease, whatever its kind.
ALTER TABLE etl.etl_runs
  ADD COLUMN kind             text NOT NULL DEFAULT 'load' CHECK (kind IN ('load', 'restore', 'reconcile')),
  ADD COLUMN lane             text NOT NULL GENERATED ALWAYS AS (CASE kind WHEN 'reconcile' THEN 'read' ELSE 'write' END) STORED,
  ADD COLUMN lease_expires_at timestamptz,
  -- Of a reconcile: who asked for it and when, and what it found.
  ADD COLUMN requested_by     text,
  ADD COLUMN requested_at     timestamptz,
  ADD COLUMN verdict          text CHECK (verdict IN ('MATCH', 'DIFFERENT', 'INCONCLUSIVE')),
  ADD COLUMN report           jsonb,
  -- A run that waits for its first runner has none.
  ALTER COLUMN runner_id DROP NOT NULL,
  DROP CONSTRAINT etl_runs_status_check,
  ADD CONSTRAINT etl_runs_status_check
    CHECK (status IN ('REQUESTED', 'RUNNING', 'SUCCESS', 'FAILED', 'PAUSED', 'HANDED_BACK', 'CANCELLED')),
  DROP CONSTRAINT finished_when_ended,
  ADD CONSTRAINT finished_when_ended CHECK ((status IN ('REQUESTED', 'RUNNING')) = (finished_at IS NULL)),
  -- What only reads puts its rows nowhere.
  DROP CONSTRAINT rows_balance,
  ADD CONSTRAINT rows_balance CHECK (
    kind = 'reconcile'
    OR (rows_read + rows_added = rows_written + rows_unchanged + rows_deduplicated + rows_rejected + rows_dropped
        AND least(rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped) >= 0)
  );
DROP INDEX etl.etl_runs_one_at_a_time, etl.etl_runs_newest_success;

ALTER TABLE etl.etl_pipelines
  -- What was asked for last; a trigger makes it a load again when the pipeline comes to rest.
  ADD COLUMN run_kind text NOT NULL DEFAULT 'load' CHECK (run_kind IN ('load', 'restore')),
  -- The run that holds the pipeline.
  ADD COLUMN run_id   uuid REFERENCES etl.etl_runs;

UPDATE etl.etl_runs SET kind = 'restore', data_path = NULL WHERE data_path = 'none';
UPDATE etl.etl_runs r SET kind = 'restore'
  FROM etl.etl_pipelines p WHERE p.id = r.pipeline_id AND p.restore_id IS NOT NULL AND r.status = 'RUNNING';
UPDATE etl.etl_pipelines SET run_kind = 'restore'
 WHERE restore_id IS NOT NULL AND status NOT IN ('IDLE', 'PAUSED', 'FAILED');

UPDATE etl.etl_pipelines p SET run_id = r.id
  FROM etl.etl_runs r
 WHERE r.pipeline_id = p.id AND r.status = 'RUNNING' AND p.lease_owner IS NOT NULL;
UPDATE etl.etl_runs r SET lease_expires_at = p.lease_expires_at FROM etl.etl_pipelines p WHERE p.run_id = r.id;

INSERT INTO etl.etl_runs (
    id, pipeline_id, kind, attempt, status, trigger, config_version, applied_version, runner_id, lease_epoch,
    lease_expires_at, started_at, finished_at, rows_read, error_code, error, requested_by, requested_at, verdict, report,
    changed_xid)
SELECT c.id, c.pipeline_id, 'reconcile', c.losses + 1,
       CASE WHEN c.status = 'WAITING' THEN 'REQUESTED' WHEN c.status = 'RUNNING' THEN 'RUNNING'
            WHEN c.report IS NOT NULL THEN 'SUCCESS' ELSE 'FAILED' END,
       'api', coalesce(c.config_version, p.config_version), coalesce(c.config_version, p.config_version), c.runner_id,
       c.lease_epoch, c.lease_expires_at, coalesce(c.started_at, c.requested_at), c.finished_at, c.rows_compared,
       c.error_code, c.error, c.requested_by, c.requested_at, CASE WHEN c.status IN ('MATCH', 'DIFFERENT', 'INCONCLUSIVE') THEN c.status END, c.report,
       -- They are no news to whoever follows the events.
       '0'::xid8
  FROM etl.etl_reconciles c JOIN etl.etl_pipelines p ON p.id = c.pipeline_id;
DROP TABLE etl.etl_reconciles;

DROP INDEX etl.etl_pipelines_leased;
ALTER TABLE etl.etl_pipelines
  DROP CONSTRAINT held_means_leased,
  ADD CONSTRAINT held_means_run
    CHECK ((status IN ('RUNNING', 'PAUSE_REQUESTED', 'CANCEL_REQUESTED')) = (run_id IS NOT NULL)),
  DROP COLUMN lease_owner,
  DROP COLUMN lease_expires_at,
  DROP COLUMN restore_id;
-- Whoever deletes old runs asks for each whether it holds a pipeline.
CREATE UNIQUE INDEX etl_pipelines_held ON etl.etl_pipelines (run_id) WHERE run_id IS NOT NULL;

ALTER TABLE etl.etl_runs
  ADD CONSTRAINT running_means_leased CHECK (
    (status = 'RUNNING') = (lease_expires_at IS NOT NULL) AND (status = 'REQUESTED' OR runner_id IS NOT NULL)
  ),
  ADD CONSTRAINT only_reconciles_are_asked_for_singly CHECK (
    (kind = 'reconcile') = (requested_by IS NOT NULL AND requested_at IS NOT NULL)
    AND (kind = 'reconcile' OR status <> 'REQUESTED')
  ),
  ADD CONSTRAINT judged_by_a_report CHECK (
    (kind = 'reconcile' OR (verdict IS NULL AND report IS NULL))
    AND (report IS NULL OR verdict IS NOT NULL)
    AND (kind <> 'reconcile' OR status <> 'SUCCESS' OR report IS NOT NULL)
    -- Trouble that may pass leaves it open.
    AND (verdict IS NULL OR report IS NOT NULL OR (verdict = 'INCONCLUSIVE' AND status = 'FAILED'))
  );
CREATE UNIQUE INDEX etl_runs_one_at_a_time ON etl.etl_runs (pipeline_id, lane) WHERE status IN ('REQUESTED', 'RUNNING');
-- Other kinds are few among many loads.
CREATE INDEX etl_runs_other_kinds ON etl.etl_runs (pipeline_id, started_at DESC, id DESC) WHERE kind <> 'load';
CREATE INDEX etl_runs_other_kinds_of_all ON etl.etl_runs (started_at DESC, id DESC) WHERE kind <> 'load';
-- Only a load makes the target fresh.
CREATE INDEX etl_runs_newest_success ON etl.etl_runs (pipeline_id, started_at DESC)
  WHERE status = 'SUCCESS' AND kind = 'load';

CREATE TRIGGER notify_runners AFTER INSERT OR UPDATE OF status ON etl.etl_runs
  FOR EACH ROW WHEN (NEW.status = 'REQUESTED') EXECUTE FUNCTION etl.notify_runners();

GRANT SELECT (run_id) ON etl.etl_pipelines TO vitrina_writer;

-- Whoever changes the status need not know of these.
CREATE OR REPLACE FUNCTION etl.forget_trouble() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NEW.status <> 'RUN_REQUESTED' THEN
    NEW.not_before := NULL;
  END IF;
  IF NEW.status IN ('IDLE', 'PAUSED', 'FAILED') THEN
    NEW.status_before := NULL;
    NEW.troubled_since := NULL;
    NEW.failed_attempts := 0;
    NEW.trouble_code := NULL;
    NEW.trouble := NULL;
    NEW.run_kind := 'load';
  ELSE
    NEW.status_before := coalesce(NEW.status_before, OLD.status, 'IDLE');
  END IF;
  IF coalesce(NEW.status_before, NEW.status) <> 'FAILED' THEN
    NEW.failure_may_pass := false;
  END IF;
  RETURN NEW;
END
$$;
