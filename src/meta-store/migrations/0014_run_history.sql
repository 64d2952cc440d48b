-- Runners delete runs that are older than RUN_HISTORY_DAYS, and the logs of these runs with them.
GRANT DELETE ON etl.etl_runs TO vitrina_meta;
CREATE INDEX etl_runs_oldest ON etl.etl_runs (finished_at) WHERE finished_at IS NOT NULL;
