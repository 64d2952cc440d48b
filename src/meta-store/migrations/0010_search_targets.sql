-- What only some kinds of target can be told: the mapping and the settings of an index, how long the one before is kept.
ALTER TABLE etl.etl_pipelines
  ADD COLUMN target_options jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(target_options) = 'object'),
  -- The wish to bring back the target as it was before the last full load; fulfilled by the next run instead of a load.
  -- Its id tells a wish that was fulfilled, but not reported, from a new one.
  ADD COLUMN restore_id     uuid;
