-- Numbers that are given out ahead may be committed after greater ones: a load can start so many before the last.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN lookback_numbers bigint NOT NULL DEFAULT 0 CHECK (lookback_numbers >= 0);
