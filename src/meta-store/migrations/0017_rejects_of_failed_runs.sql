-- A run that was refused too many rows keeps the first of them, to be looked at. They were not set aside: the next run
-- meets these rows again, and its first batch settles what was kept of them.
ALTER TABLE etl.etl_rejects ADD COLUMN of_failed_run boolean NOT NULL DEFAULT false;
CREATE INDEX etl_rejects_of_failed_run ON etl.etl_rejects (pipeline_id) WHERE of_failed_run;
GRANT SELECT (of_failed_run) ON etl.etl_rejects TO vitrina_writer;
