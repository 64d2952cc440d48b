-- When the schedule fires next, by the database's clock. Null where there is nothing to wait for: no schedule, not
-- enabled, or not planned yet, which the next runner that looks makes up for. Milliseconds, because the time is
-- compared for equality with what a runner read before: no two runners fire the same tick.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN next_run_at    timestamptz(3),
  -- Why a schedule that was written by hand cannot be planned; it waits until somebody corrects it.
  ADD COLUMN schedule_error text,
  ADD CONSTRAINT planned_means_scheduled CHECK (next_run_at IS NULL OR (enabled AND schedule_interval IS NOT NULL)),
  ADD CONSTRAINT planned_or_refused CHECK (next_run_at IS NULL OR schedule_error IS NULL);

CREATE INDEX etl_pipelines_scheduled ON etl.etl_pipelines (next_run_at NULLS FIRST, id)
  WHERE enabled AND schedule_interval IS NOT NULL AND schedule_error IS NULL;

-- A changed schedule starts anew, also in a row changed by hand; and a pipeline that was disabled for a while does
-- not make up for what it was not meant to run.
CREATE FUNCTION etl.forget_plan() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NEW.next_run_at := NULL;
  NEW.schedule_error := NULL;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget_plan BEFORE UPDATE OF schedule_interval, enabled ON etl.etl_pipelines
  FOR EACH ROW
  WHEN (OLD.schedule_interval IS DISTINCT FROM NEW.schedule_interval OR OLD.enabled IS DISTINCT FROM NEW.enabled)
  EXECUTE FUNCTION etl.forget_plan();

-- Runners sleep until the next due time that they know of, so a new plan is worth waking them.
CREATE TRIGGER notify_runners_of_schedule AFTER INSERT OR UPDATE OF schedule_interval, enabled ON etl.etl_pipelines
  FOR EACH ROW
  WHEN (NEW.enabled AND NEW.schedule_interval IS NOT NULL AND NEW.next_run_at IS NULL AND NEW.schedule_error IS NULL)
  EXECUTE FUNCTION etl.notify_runners();
