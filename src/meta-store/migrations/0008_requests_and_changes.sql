-- Every request to run has a number, and every run carries the number of its request: so somebody who asked can follow
-- all attempts of it, also those that another runner takes over, and tell them from the runs of a later request.
ALTER TABLE etl.etl_pipelines ADD COLUMN run_request integer NOT NULL DEFAULT 0 CHECK (run_request >= 0);
ALTER TABLE etl.etl_runs
  ADD COLUMN run_request     integer NOT NULL DEFAULT 0 CHECK (run_request >= 0),
  -- The newest version whose changes the run has taken up; config_version is the one it began with.
  ADD COLUMN applied_version integer NOT NULL DEFAULT 0,
  -- What the planner of the source expects this run to read; null where nobody can tell.
  ADD COLUMN estimated_rows  bigint CHECK (estimated_rows >= 0);
UPDATE etl.etl_runs SET applied_version = config_version;

-- A run that is handed back, or taken from a lost runner, still serves the same request.
CREATE OR REPLACE FUNCTION etl.complete_run_request() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NEW.run_requested_at := coalesce(NEW.run_requested_at, clock_timestamp());
  NEW.run_trigger := coalesce(NEW.run_trigger, 'api');
  IF TG_OP = 'INSERT' OR OLD.status IN ('IDLE', 'PAUSED', 'FAILED') THEN
    NEW.run_request := NEW.run_request + 1;
  END IF;
  RETURN NEW;
END
$$;

-- Which transaction changed a row last, as far as people watch it. Transactions commit in another order than they
-- begin, so a time or a sequence would lose changes; "every transaction before this one has ended" does not.
ALTER TABLE etl.etl_pipelines ADD COLUMN changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id();
ALTER TABLE etl.etl_runs ADD COLUMN changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX etl_pipelines_changed ON etl.etl_pipelines (changed_xid);
CREATE INDEX etl_runs_changed ON etl.etl_runs (changed_xid);

CREATE FUNCTION etl.stamp_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  NEW.changed_xid := pg_current_xact_id();
  RETURN NEW;
END
$$;
CREATE TRIGGER stamp_change BEFORE UPDATE OF status, enabled, config_version ON etl.etl_pipelines
  FOR EACH ROW
  WHEN ((OLD.status, OLD.enabled, OLD.config_version) IS DISTINCT FROM (NEW.status, NEW.enabled, NEW.config_version))
  EXECUTE FUNCTION etl.stamp_change();
CREATE TRIGGER stamp_change BEFORE UPDATE OF status ON etl.etl_runs
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION etl.stamp_change();

-- Wakes whoever waits for a pipeline at the API. Never with a batch: commits that notify go one after the other in the
-- whole server.
CREATE FUNCTION etl.notify_watchers() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF TG_TABLE_NAME = 'etl_runs' THEN
    PERFORM pg_notify('vitrina_changes', NEW.pipeline_id::text);
  ELSE
    PERFORM pg_notify('vitrina_changes', NEW.id::text);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER notify_watchers_of_new AFTER INSERT ON etl.etl_pipelines
  FOR EACH ROW EXECUTE FUNCTION etl.notify_watchers();
CREATE TRIGGER notify_watchers AFTER UPDATE OF status, enabled, config_version ON etl.etl_pipelines
  FOR EACH ROW
  WHEN ((OLD.status, OLD.enabled, OLD.config_version) IS DISTINCT FROM (NEW.status, NEW.enabled, NEW.config_version))
  EXECUTE FUNCTION etl.notify_watchers();
CREATE TRIGGER notify_watchers_of_new AFTER INSERT ON etl.etl_runs
  FOR EACH ROW EXECUTE FUNCTION etl.notify_watchers();
CREATE TRIGGER notify_watchers AFTER UPDATE OF status ON etl.etl_runs
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION etl.notify_watchers();

-- A runner tells which code tasks it has, and how often it reports: the API loads no tasks itself.
ALTER TABLE etl.etl_runners
  ADD COLUMN tasks           jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN report_every_ms integer NOT NULL DEFAULT 5000 CHECK (report_every_ms > 0);

-- Pages of lists stay flat, however many pipelines and runs there are. The partial ones are for the few that somebody
-- looks for among the many that are well; an index over every status would lure the claim away from its own.
CREATE INDEX etl_pipelines_by_name ON etl.etl_pipelines (name COLLATE "C");
CREATE INDEX etl_pipelines_stopped ON etl.etl_pipelines (name COLLATE "C") WHERE status IN ('PAUSED', 'FAILED');
CREATE INDEX etl_runs_newest_of_all ON etl.etl_runs (started_at DESC, id DESC);
CREATE INDEX etl_runs_newest_stopped ON etl.etl_runs (started_at DESC, id DESC) WHERE status IN ('PAUSED', 'FAILED');

-- Answers to requests that carry an Idempotency-Key. Without a status the request is still under way. Only successes
-- are kept: a request that was refused changed nothing, so it may be tried again.
CREATE TABLE etl.etl_answers (
  actor        text NOT NULL,
  key          text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  operation    text NOT NULL,
  request_hash text NOT NULL,
  begun_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  status       integer CHECK (status BETWEEN 200 AND 299),
  headers      jsonb,
  body         text,
  PRIMARY KEY (actor, key, operation),
  CONSTRAINT answered_as_a_whole CHECK ((status IS NULL) = (headers IS NULL) AND (status IS NULL) = (body IS NULL))
);
CREATE INDEX etl_answers_oldest ON etl.etl_answers (begun_at);

GRANT DELETE ON etl.etl_runners TO vitrina_meta;
GRANT SELECT, INSERT, UPDATE, DELETE ON etl.etl_answers TO vitrina_meta;
GRANT SELECT (max_rejects, max_delete_percent) ON etl.etl_pipelines TO vitrina_writer;
GRANT UPDATE (applied_version) ON etl.etl_runs TO vitrina_writer;
