ALTER TABLE etl.etl_state
  -- The target that the checkpoint was made for: another one, or an emptied one, does not hold the rows before it.
  -- Null where nothing is to be compared.
  ADD COLUMN target_mark jsonb;
-- Of checkpoints from before it is only known that there was a target.
UPDATE etl.etl_state SET target_mark = '{}' WHERE watermark_fingerprint IS NOT NULL OR scan_position IS NOT NULL;

ALTER TABLE etl.etl_runs
  -- What a person should know about the run, such as why it read everything again.
  ADD COLUMN notes text[] NOT NULL DEFAULT '{}';
