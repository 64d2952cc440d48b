-- A request can be withdrawn, and a run cancelled: the pipeline is then as it was before somebody asked.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN status_before text CHECK (status_before IN ('IDLE', 'PAUSED', 'FAILED')),
  DROP CONSTRAINT etl_pipelines_status_check,
  ADD CONSTRAINT etl_pipelines_status_check CHECK (
    status IN ('IDLE', 'RUN_REQUESTED', 'RUNNING', 'PAUSE_REQUESTED', 'CANCEL_REQUESTED', 'PAUSED', 'FAILED')
  ),
  DROP CONSTRAINT held_means_leased,
  ADD CONSTRAINT held_means_leased CHECK (
    (status IN ('RUNNING', 'PAUSE_REQUESTED', 'CANCEL_REQUESTED')) = (lease_owner IS NOT NULL)
    AND (lease_owner IS NULL) = (lease_expires_at IS NULL)
  ),
  -- What it failed by before the request counts again when that is withdrawn.
  DROP CONSTRAINT only_failed_ones_may_pass,
  ADD CONSTRAINT only_failed_ones_may_pass CHECK (NOT failure_may_pass OR coalesce(status_before, status) = 'FAILED');

UPDATE etl.etl_pipelines SET status_before = 'IDLE' WHERE status NOT IN ('IDLE', 'PAUSED', 'FAILED');
ALTER TABLE etl.etl_pipelines
  ADD CONSTRAINT a_request_can_be_withdrawn CHECK ((status IN ('IDLE', 'PAUSED', 'FAILED')) = (status_before IS NULL));

DROP INDEX etl.etl_pipelines_leased;
CREATE INDEX etl_pipelines_leased ON etl.etl_pipelines (lease_expires_at)
  WHERE status IN ('RUNNING', 'PAUSE_REQUESTED', 'CANCEL_REQUESTED');

ALTER TABLE etl.etl_runs
  DROP CONSTRAINT etl_runs_status_check,
  ADD CONSTRAINT etl_runs_status_check
    CHECK (status IN ('RUNNING', 'SUCCESS', 'FAILED', 'PAUSED', 'HANDED_BACK', 'CANCELLED'));

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
  ELSE
    NEW.status_before := coalesce(NEW.status_before, OLD.status, 'IDLE');
  END IF;
  IF coalesce(NEW.status_before, NEW.status) <> 'FAILED' THEN
    NEW.failure_may_pass := false;
  END IF;
  RETURN NEW;
END
$$;
DROP TRIGGER forget_trouble ON etl.etl_pipelines;
CREATE TRIGGER forget_trouble BEFORE INSERT OR UPDATE OF status ON etl.etl_pipelines
  FOR EACH ROW EXECUTE FUNCTION etl.forget_trouble();
