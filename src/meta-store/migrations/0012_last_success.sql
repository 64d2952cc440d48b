-- When a pipeline last loaded is asked for with every scrape of the metrics. Without an index of its own the answer
-- would take longer the longer a pipeline fails. A run that only brought back a previous target loaded nothing.
CREATE INDEX etl_runs_newest_success ON etl.etl_runs (pipeline_id, started_at DESC)
  WHERE status = 'SUCCESS' AND data_path IS DISTINCT FROM 'none';
