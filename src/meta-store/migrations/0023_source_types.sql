-- Which types of sources there are is known to the connectors of a program, not to its database: only the form is held.
ALTER TABLE etl.etl_pipelines
  DROP CONSTRAINT etl_pipelines_source_type_check,
  ADD CONSTRAINT etl_pipelines_source_type_check CHECK (source_type ~ '^[a-z][a-z0-9_]{0,30}$');
