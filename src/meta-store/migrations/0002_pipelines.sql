CREATE TABLE etl.etl_pipelines (
  id                 uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name               text NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z][A-Za-z0-9_.-]{0,62}$'),
  description        text NOT NULL DEFAULT '',
  type               text NOT NULL DEFAULT 'SQL' CHECK (type IN ('SQL', 'PYTHON', 'TYPESCRIPT')),
  source_type        text NOT NULL DEFAULT 'postgres' CHECK (source_type IN ('postgres')),
  source_connection  text NOT NULL DEFAULT 'main',
  source_query       text NOT NULL DEFAULT '',
  target_table       text NOT NULL CHECK (target_table <> ''),
  target_key         text[] NOT NULL DEFAULT '{}',
  create_target      boolean NOT NULL DEFAULT false,
  mode               text NOT NULL DEFAULT 'full' CHECK (mode IN ('full', 'incremental')),
  incremental_key    text,
  incremental_id_key text,
  batch_size         integer NOT NULL DEFAULT 1000 CHECK (batch_size BETWEEN 1 AND 100000),
  enabled            boolean NOT NULL DEFAULT true,
  schedule_interval  text,
  status             text NOT NULL DEFAULT 'IDLE'
                     CHECK (status IN ('IDLE', 'RUN_REQUESTED', 'RUNNING', 'PAUSE_REQUESTED', 'PAUSED', 'FAILED')),
  config_version     integer NOT NULL DEFAULT 1 CHECK (config_version > 0),
  -- What asked for the waiting run, and when: the claim serves the longest waiting first.
  run_requested_at   timestamptz,
  run_trigger        text CHECK (run_trigger IN ('api', 'schedule', 'recovery')),
  -- The lease. The epoch grows with every claim and is never reset: it tells a late runner from the present one.
  lease_owner        uuid,
  lease_epoch        bigint NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0),
  lease_expires_at   timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT incremental_has_a_key CHECK (mode <> 'incremental' OR incremental_key IS NOT NULL),
  CONSTRAINT id_key_needs_a_key CHECK (incremental_id_key IS NULL OR incremental_key IS NOT NULL),
  CONSTRAINT held_means_leased CHECK (
    (status IN ('RUNNING', 'PAUSE_REQUESTED')) = (lease_owner IS NOT NULL)
    AND (lease_owner IS NULL) = (lease_expires_at IS NULL)
  ),
  CONSTRAINT waiting_has_a_trigger CHECK (
    status <> 'RUN_REQUESTED' OR (run_requested_at IS NOT NULL AND run_trigger IS NOT NULL)
  )
);
CREATE INDEX etl_pipelines_waiting ON etl.etl_pipelines (run_requested_at, id)
  WHERE enabled AND status = 'RUN_REQUESTED';
CREATE INDEX etl_pipelines_leased ON etl.etl_pipelines (lease_expires_at)
  WHERE status IN ('RUNNING', 'PAUSE_REQUESTED');

CREATE TABLE etl.etl_pipeline_tasks (
  id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  pipeline_id  uuid NOT NULL REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  order_index  integer NOT NULL CHECK (order_index >= 1),
  task_type    text NOT NULL CHECK (task_type <> ''),
  body         text NOT NULL CHECK (body <> ''),
  source_table text,
  target_table text,
  UNIQUE (pipeline_id, order_index)
);

CREATE TABLE etl.etl_pipeline_versions (
  pipeline_id uuid NOT NULL REFERENCES etl.etl_pipelines ON DELETE CASCADE,
  version     integer NOT NULL CHECK (version > 0),
  config      jsonb NOT NULL,
  author      text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline_id, version)
);

-- A row written by hand becomes a waiting pipeline like one from the API, so it gets the same defaults.
CREATE FUNCTION etl.complete_run_request() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NEW.run_requested_at := coalesce(NEW.run_requested_at, clock_timestamp());
  NEW.run_trigger := coalesce(NEW.run_trigger, 'api');
  RETURN NEW;
END
$$;
CREATE TRIGGER complete_run_request BEFORE INSERT OR UPDATE OF status ON etl.etl_pipelines
  FOR EACH ROW WHEN (NEW.status = 'RUN_REQUESTED') EXECUTE FUNCTION etl.complete_run_request();

-- Wakes the runners at once; polling is the safety net.
CREATE FUNCTION etl.notify_runners() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  PERFORM pg_notify('vitrina_pipelines', NEW.id::text);
  RETURN NULL;
END
$$;
CREATE TRIGGER notify_runners AFTER INSERT OR UPDATE OF status, enabled ON etl.etl_pipelines
  FOR EACH ROW WHEN (NEW.enabled AND NEW.status IN ('RUN_REQUESTED', 'PAUSE_REQUESTED'))
  EXECUTE FUNCTION etl.notify_runners();
