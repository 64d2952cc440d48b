-- A pipeline that is deleted, or given another target, may leave something behind at the old one: an unfinished load, an
-- index that was kept for restoring. Whoever deletes it cannot reach the target; a runner can, and clears it away.
CREATE TABLE etl.etl_abandoned_targets (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Not a reference: the pipeline may be gone.
  pipeline_id    uuid NOT NULL,
  target_table   text NOT NULL,
  target_options jsonb NOT NULL,
  abandoned_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  look_after     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX etl_abandoned_targets_due ON etl.etl_abandoned_targets (look_after, id);

CREATE FUNCTION etl.note_abandoned_target() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO etl.etl_abandoned_targets (pipeline_id, target_table, target_options)
  VALUES (OLD.id, OLD.target_table, OLD.target_options);
  RETURN NULL;
END
$$;
CREATE TRIGGER note_abandoned_target_of_deleted AFTER DELETE ON etl.etl_pipelines
  FOR EACH ROW EXECUTE FUNCTION etl.note_abandoned_target();
CREATE TRIGGER note_abandoned_target AFTER UPDATE OF target_table ON etl.etl_pipelines
  FOR EACH ROW WHEN (OLD.target_table IS DISTINCT FROM NEW.target_table) EXECUTE FUNCTION etl.note_abandoned_target();

GRANT SELECT, INSERT, UPDATE, DELETE ON etl.etl_abandoned_targets TO vitrina_meta;
