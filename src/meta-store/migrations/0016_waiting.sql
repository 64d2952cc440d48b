-- Trouble that passes is waited for. The pipeline is given back meanwhile, so that it holds no place of a runner and
-- survives its runner; nobody claims it before its time.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN retry_for_seconds integer NOT NULL DEFAULT 3600 CHECK (retry_for_seconds BETWEEN 0 AND 604800),
  ADD COLUMN not_before        timestamptz,
  -- Since when attempts fail without a batch in between, how many did, and how the last one did.
  ADD COLUMN troubled_since    timestamptz,
  ADD COLUMN failed_attempts   integer NOT NULL DEFAULT 0 CHECK (failed_attempts >= 0),
  ADD COLUMN trouble_code      text,
  ADD COLUMN trouble           text,
  -- What it failed by may pass: the schedule tries again.
  ADD COLUMN failure_may_pass  boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT only_requested_ones_wait CHECK (not_before IS NULL OR status = 'RUN_REQUESTED'),
  ADD CONSTRAINT waiting_has_a_reason
    CHECK (not_before IS NULL OR (troubled_since IS NOT NULL AND trouble_code IS NOT NULL AND trouble IS NOT NULL)),
  ADD CONSTRAINT only_failed_ones_may_pass CHECK (NOT failure_may_pass OR status = 'FAILED');

-- Whoever changes the status need not know of these.
CREATE FUNCTION etl.forget_trouble() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NEW.status <> 'RUN_REQUESTED' THEN
    NEW.not_before := NULL;
  END IF;
  IF NEW.status <> 'FAILED' THEN
    NEW.failure_may_pass := false;
  END IF;
  IF NEW.status IN ('IDLE', 'PAUSED', 'FAILED') THEN
    NEW.troubled_since := NULL;
    NEW.failed_attempts := 0;
    NEW.trouble_code := NULL;
    NEW.trouble := NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget_trouble BEFORE UPDATE OF status ON etl.etl_pipelines
  FOR EACH ROW EXECUTE FUNCTION etl.forget_trouble();
