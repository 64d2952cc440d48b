-- A runner that stops hands its run back: nobody paused it. A load that was read in parts is followed by a further run.
ALTER TABLE etl.etl_runs
  DROP CONSTRAINT etl_runs_status_check,
  ADD CONSTRAINT etl_runs_status_check
    CHECK (status IN ('RUNNING', 'SUCCESS', 'FAILED', 'PAUSED', 'HANDED_BACK')),
  DROP CONSTRAINT etl_runs_trigger_check,
  ADD CONSTRAINT etl_runs_trigger_check CHECK (trigger IN ('api', 'schedule', 'recovery', 'follow_up'));
ALTER TABLE etl.etl_pipelines
  DROP CONSTRAINT etl_pipelines_run_trigger_check,
  ADD CONSTRAINT etl_pipelines_run_trigger_check CHECK (run_trigger IN ('api', 'schedule', 'recovery', 'follow_up'));
