ALTER TABLE etl.etl_state
  -- The source that the position was reached in: one that was restored, or another one, has rows before the position that
  -- nobody has read. Null where nothing is to be compared.
  ADD COLUMN source_mark jsonb;
