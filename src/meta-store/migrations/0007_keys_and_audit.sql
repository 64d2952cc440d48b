-- Keys of the API. Only a hash of the secret is kept: 256 random bits need no slow hash, nobody can guess them.
CREATE TABLE etl.api_keys (
  id            text PRIMARY KEY CHECK (id ~ '^[0-9a-f]{12}$'),
  name          text NOT NULL CHECK (name <> ''),
  role          text NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
  secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_by    text NOT NULL,
  expires_at    timestamptz,
  last_used_at  timestamptz,
  revoked_at    timestamptz,
  CONSTRAINT expires_after_it_is_made CHECK (expires_at > created_at)
);
CREATE INDEX api_keys_newest ON etl.api_keys (created_at DESC, id DESC);

-- Who changed what, and who tried in vain. Nothing in it refers to other tables, so that it outlives what it tells of.
CREATE TABLE etl.audit_log (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor       text NOT NULL,
  role        text,
  key_id      text,
  ip          text,
  action      text NOT NULL,
  -- The id of what was changed, or what the path named when nothing was found; and its name at that time.
  object      text,
  object_name text,
  outcome     text NOT NULL CHECK (outcome IN ('done', 'refused', 'denied')),
  http_status integer CHECK (http_status BETWEEN 100 AND 599),
  request_id  text,
  details     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(details) = 'object')
);
CREATE INDEX audit_log_of_object ON etl.audit_log (object, id DESC);
CREATE INDEX audit_log_of_actor ON etl.audit_log (actor, id DESC);

-- A key is never forgotten, only revoked; an entry of the log is never changed.
GRANT SELECT, INSERT, UPDATE (last_used_at, revoked_at) ON etl.api_keys TO vitrina_meta;
GRANT SELECT, INSERT ON etl.audit_log TO vitrina_meta;
