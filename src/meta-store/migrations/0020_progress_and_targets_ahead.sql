-- last_processed_* also show how far a load has come that has no watermark yet: without watermark_fingerprint they are
-- only shown, and nothing starts there.
ALTER TABLE etl.etl_state
  DROP CONSTRAINT watermark_has_a_fingerprint,
  DROP CONSTRAINT id_needs_a_value,
  -- A target that was written later than this meta-store knows of does not get right by trying again: a person decides.
  ADD COLUMN target_ahead boolean NOT NULL DEFAULT false;
