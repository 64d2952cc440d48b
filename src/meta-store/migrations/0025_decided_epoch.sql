ALTER TABLE etl.etl_state
  -- The last claim before a person changed the state: a position that it, or an earlier one, left beside the data of a
  -- target elsewhere is given up, although the meta-store may never have seen it.
  ADD COLUMN decided_epoch bigint NOT NULL DEFAULT 0;
