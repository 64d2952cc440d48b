-- What a run said, for people. The runner writes it in bulk, beside the batches and never within their transactions;
-- it goes with its run. Type json, not jsonb: a text is kept as it is, whatever characters it has.
CREATE TABLE etl.etl_run_logs (
  id      bigint GENERATED ALWAYS AS IDENTITY,
  run_id  uuid NOT NULL REFERENCES etl.etl_runs ON DELETE CASCADE,
  at      timestamptz NOT NULL,
  level   text NOT NULL CHECK (level IN ('debug', 'info', 'warn', 'error')),
  message text NOT NULL CHECK (length(message) <= 500),
  fields  json NOT NULL CHECK (json_typeof(fields) = 'object' AND octet_length(fields::text) <= 8192),
  PRIMARY KEY (run_id, id)
);

GRANT SELECT, INSERT ON etl.etl_run_logs TO vitrina_meta;
