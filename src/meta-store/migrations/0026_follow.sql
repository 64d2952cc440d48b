-- Follow mode: a mart that follows every change of the tables that its query reads. And sweeps, which compare a whole
-- target with its query and repair it, for whoever does not read everything in every run.
ALTER TABLE etl.etl_pipelines
  DROP CONSTRAINT etl_pipelines_mode_check,
  ADD CONSTRAINT etl_pipelines_mode_check CHECK (mode IN ('full', 'incremental', 'follow')),
  DROP CONSTRAINT etl_pipelines_run_trigger_check,
  ADD CONSTRAINT etl_pipelines_run_trigger_check
    CHECK (run_trigger IN ('api', 'schedule', 'recovery', 'follow_up', 'change', 'sweep')),
  -- What is left out has its default.
  ADD COLUMN follow          jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(follow) = 'object'),
  ADD COLUMN sweep           text,
  -- Planned as the schedule is: see next_run_at and schedule_error.
  ADD COLUMN next_sweep_at   timestamptz(3),
  ADD COLUMN sweep_error     text,
  -- Since when a sweep is due. It stays until one has ended, whatever happens to the run that was to do it.
  ADD COLUMN sweep_wanted_at timestamptz,
  ADD CONSTRAINT planned_sweep_means_enabled CHECK (next_sweep_at IS NULL OR (enabled AND sweep IS NOT NULL)),
  ADD CONSTRAINT sweep_planned_or_refused CHECK (next_sweep_at IS NULL OR sweep_error IS NULL);
ALTER TABLE etl.etl_runs
  DROP CONSTRAINT etl_runs_trigger_check,
  ADD CONSTRAINT etl_runs_trigger_check
    CHECK (trigger IN ('api', 'schedule', 'recovery', 'follow_up', 'change', 'sweep'));

CREATE INDEX etl_pipelines_following ON etl.etl_pipelines (id) WHERE enabled AND mode = 'follow';
CREATE INDEX etl_pipelines_swept ON etl.etl_pipelines (next_sweep_at NULLS FIRST, id)
  WHERE enabled AND sweep IS NOT NULL AND sweep_error IS NULL;
CREATE INDEX etl_pipelines_to_sweep ON etl.etl_pipelines (id) WHERE sweep_wanted_at IS NOT NULL;

CREATE FUNCTION etl.forget_sweep_plan() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NEW.next_sweep_at := NULL;
  NEW.sweep_error := NULL;
  NEW.sweep_wanted_at := NULL;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget_sweep_plan BEFORE UPDATE OF sweep, enabled ON etl.etl_pipelines
  FOR EACH ROW
  WHEN (OLD.sweep IS DISTINCT FROM NEW.sweep OR OLD.enabled IS DISTINCT FROM NEW.enabled)
  EXECUTE FUNCTION etl.forget_sweep_plan();
CREATE TRIGGER notify_runners_of_sweep AFTER INSERT OR UPDATE OF sweep, enabled ON etl.etl_pipelines
  FOR EACH ROW
  WHEN (NEW.enabled AND NEW.sweep IS NOT NULL AND NEW.next_sweep_at IS NULL AND NEW.sweep_error IS NULL)
  EXECUTE FUNCTION etl.notify_runners();

CREATE TABLE etl.follow_state (
  pipeline_id      uuid PRIMARY KEY REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  -- Every change that it shows is in the target. Null: the next run compares everything.
  position         jsonb,
  -- Which query, key and target it belongs to.
  fingerprint      text,
  -- Where a comparison of everything began that has not ended: what it has read so far is not older.
  compare_position jsonb,
  -- Why everything was compared last, or is being compared.
  compare_reason   text,
  -- How often everything was compared since the last round: a source that gives reason for it again and again is asked
  -- less often.
  compares         integer NOT NULL DEFAULT 0 CHECK (compares >= 0),
  -- Those whose changes are followed, as schema.table.
  tables           text[] NOT NULL DEFAULT '{}',
  last_compare_at  timestamptz,
  last_round_at    timestamptz,
  last_sweep_at    timestamptz,
  -- Rows that sweeps found to differ although every change had been followed, over all sweeps and in the last one.
  repaired         bigint NOT NULL DEFAULT 0 CHECK (repaired >= 0),
  last_repaired    bigint NOT NULL DEFAULT 0 CHECK (last_repaired >= 0),
  CONSTRAINT follow_position_has_a_fingerprint CHECK (position IS NULL OR fingerprint IS NOT NULL),
  CONSTRAINT comparing_has_a_reason CHECK (compare_position IS NULL OR compare_reason IS NOT NULL)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON etl.follow_state TO vitrina_meta;
