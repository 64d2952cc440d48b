schema analytics
  grant CREATE to vitrina_writer
  grant USAGE to vitrina_writer
schema etl
  grant USAGE to vitrina_meta
  grant USAGE to vitrina_writer

table etl.api_keys
  id text not null
  name text not null
  role text not null
  secret_sha256 bytea not null
  created_at timestamp with time zone not null default clock_timestamp()
  created_by text not null
  expires_at timestamp with time zone
  last_used_at timestamp with time zone
  revoked_at timestamp with time zone
table etl.audit_log
  id bigint not null identity
  at timestamp with time zone not null default clock_timestamp()
  actor text not null
  role text
  key_id text
  ip text
  action text not null
  object text
  object_name text
  outcome text not null
  http_status integer
  request_id text
  details jsonb not null default '{}'::jsonb
table etl.etl_abandoned_targets
  id bigint not null identity
  pipeline_id uuid not null
  target_table text not null
  target_options jsonb not null
  abandoned_at timestamp with time zone not null default clock_timestamp()
  look_after timestamp with time zone not null default clock_timestamp()
table etl.etl_answers
  actor text not null
  key text not null
  operation text not null
  request_hash text not null
  begun_at timestamp with time zone not null default clock_timestamp()
  status integer
  headers jsonb
  body text
table etl.etl_pipeline_tasks
  id uuid not null default gen_random_uuid()
  pipeline_id uuid not null
  order_index integer not null
  task_type text not null
  body text not null
  source_table text
  target_table text
table etl.etl_pipeline_versions
  pipeline_id uuid not null
  version integer not null
  config jsonb not null
  author text not null
  created_at timestamp with time zone not null default now()
table etl.etl_pipelines
  id uuid not null default gen_random_uuid()
  name text not null
  description text not null default ''::text
  type text not null default 'SQL'::text
  source_type text not null default 'postgres'::text
  source_connection text not null default 'main'::text
  source_query text not null default ''::text
  target_table text not null
  target_key text[] not null default '{}'::text[]
  create_target boolean not null default false
  mode text not null default 'full'::text
  incremental_key text
  incremental_id_key text
  batch_size integer not null default 1000
  enabled boolean not null default true
  schedule_interval text
  status text not null default 'IDLE'::text
  config_version integer not null default 1
  run_requested_at timestamp with time zone
  run_trigger text
  lease_epoch bigint not null default 0
  created_at timestamp with time zone not null default now()
  updated_at timestamp with time zone not null default now()
  add_columns boolean not null default false
  allow_empty boolean not null default false
  max_delete_percent integer not null default 50
  max_rejects integer not null default 100
  null_cursor text not null default 'reject'::text
  lookback_seconds integer not null default 0
  next_run_at timestamp(3) with time zone
  schedule_error text
  run_request integer not null default 0
  changed_xid xid8 not null default pg_current_xact_id()
  target_options jsonb not null default '{}'::jsonb
  retry_for_seconds integer not null default 3600
  not_before timestamp with time zone
  troubled_since timestamp with time zone
  failed_attempts integer not null default 0
  trouble_code text
  trouble text
  failure_may_pass boolean not null default false
  lookback_numbers bigint not null default 0
  status_before text
  run_kind text not null default 'load'::text
  run_id uuid
  follow jsonb not null default '{}'::jsonb
  sweep text
  next_sweep_at timestamp(3) with time zone
  sweep_error text
  sweep_wanted_at timestamp with time zone
table etl.etl_rejects
  id bigint not null identity
  pipeline_id uuid not null
  run_id uuid not null
  row_key jsonb
  row jsonb not null
  error_code text not null
  error text not null
  created_at timestamp with time zone not null default clock_timestamp()
  retry_requested_at timestamp with time zone
  of_failed_run boolean not null default false
table etl.etl_run_logs
  id bigint not null identity
  run_id uuid not null
  at timestamp with time zone not null
  level text not null
  message text not null
  fields json not null
table etl.etl_runners
  id uuid not null
  hostname text not null
  pid integer not null
  version text not null
  started_at timestamp with time zone not null default clock_timestamp()
  last_seen_at timestamp with time zone not null default clock_timestamp()
  stopped_at timestamp with time zone
  tasks jsonb not null default '[]'::jsonb
  report_every_ms integer not null default 5000
table etl.etl_runs
  id uuid not null default gen_random_uuid()
  pipeline_id uuid not null
  attempt integer not null
  status text not null
  trigger text not null
  config_version integer not null
  runner_id uuid
  lease_epoch bigint not null
  started_at timestamp with time zone not null default clock_timestamp()
  finished_at timestamp with time zone
  rows_read bigint not null default 0
  rows_written bigint not null default 0
  rows_unchanged bigint not null default 0
  rows_deduplicated bigint not null default 0
  rows_rejected bigint not null default 0
  rows_dropped bigint not null default 0
  rows_deleted bigint not null default 0
  batches bigint not null default 0
  error_code text
  error text
  data_path text
  strategy text
  rows_added bigint not null default 0
  bytes bigint not null default 0
  read_ms bigint not null default 0
  transform_ms bigint not null default 0
  write_ms bigint not null default 0
  run_request integer not null default 0
  applied_version integer not null default 0
  estimated_rows bigint
  changed_xid xid8 not null default pg_current_xact_id()
  resumed boolean
  notes text[] not null default '{}'::text[]
  kind text not null default 'load'::text
  lane text not null generated default CASE kind WHEN 'reconcile'::text THEN 'read'::text ELSE 'write'::text END
  lease_expires_at timestamp with time zone
  requested_by text
  requested_at timestamp with time zone
  verdict text
  report jsonb
table etl.etl_state
  pipeline_id uuid not null
  last_processed_value text
  last_processed_id text
  scan_position text[]
  batch_no bigint not null default 0
  fingerprint text
  updated_at timestamp with time zone not null default clock_timestamp()
  watermark_fingerprint text
  safe_point text
  candidate_value text
  candidate_id text
  candidate_at text
  target_mark jsonb
  target_ahead boolean not null default false
  source_mark jsonb
  decided_epoch bigint not null default 0
table etl.follow_state
  pipeline_id uuid not null
  position jsonb
  fingerprint text
  compare_position jsonb
  compare_reason text
  compares integer not null default 0
  tables text[] not null default '{}'::text[]
  last_compare_at timestamp with time zone
  last_round_at timestamp with time zone
  last_sweep_at timestamp with time zone
  repaired bigint not null default 0
  last_repaired bigint not null default 0
  sweep_next jsonb
table etl.schema_migrations
  version integer not null
  name text not null
  checksum text not null
  applied_at timestamp with time zone not null default clock_timestamp()

constraint etl.api_keys api_keys_id_check: CHECK ((id ~ '^[0-9a-f]{12}$'::text))
constraint etl.api_keys api_keys_name_check: CHECK ((name <> ''::text))
constraint etl.api_keys api_keys_pkey: PRIMARY KEY (id)
constraint etl.api_keys api_keys_role_check: CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'editor'::text, 'admin'::text])))
constraint etl.api_keys api_keys_secret_sha256_check: CHECK ((octet_length(secret_sha256) = 32))
constraint etl.api_keys expires_after_it_is_made: CHECK ((expires_at > created_at))
constraint etl.audit_log audit_log_details_check: CHECK ((jsonb_typeof(details) = 'object'::text))
constraint etl.audit_log audit_log_http_status_check: CHECK (((http_status >= 100) AND (http_status <= 599)))
constraint etl.audit_log audit_log_outcome_check: CHECK ((outcome = ANY (ARRAY['done'::text, 'refused'::text, 'denied'::text])))
constraint etl.audit_log audit_log_pkey: PRIMARY KEY (id)
constraint etl.etl_abandoned_targets etl_abandoned_targets_pkey: PRIMARY KEY (id)
constraint etl.etl_answers answered_as_a_whole: CHECK ((((status IS NULL) = (headers IS NULL)) AND ((status IS NULL) = (body IS NULL))))
constraint etl.etl_answers etl_answers_key_check: CHECK (((length(key) >= 1) AND (length(key) <= 255)))
constraint etl.etl_answers etl_answers_pkey: PRIMARY KEY (actor, key, operation)
constraint etl.etl_answers etl_answers_status_check: CHECK (((status >= 200) AND (status <= 299)))
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_body_check: CHECK ((body <> ''::text))
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_order_index_check: CHECK ((order_index >= 1))
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_pipeline_id_order_index_key: UNIQUE (pipeline_id, order_index)
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_pkey: PRIMARY KEY (id)
constraint etl.etl_pipeline_tasks etl_pipeline_tasks_task_type_check: CHECK ((task_type <> ''::text))
constraint etl.etl_pipeline_versions etl_pipeline_versions_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.etl_pipeline_versions etl_pipeline_versions_pkey: PRIMARY KEY (pipeline_id, version)
constraint etl.etl_pipeline_versions etl_pipeline_versions_version_check: CHECK ((version > 0))
constraint etl.etl_pipelines a_request_can_be_withdrawn: CHECK (((status = ANY (ARRAY['IDLE'::text, 'PAUSED'::text, 'FAILED'::text])) = (status_before IS NULL)))
constraint etl.etl_pipelines etl_pipelines_batch_size_check: CHECK (((batch_size >= 1) AND (batch_size <= 100000)))
constraint etl.etl_pipelines etl_pipelines_config_version_check: CHECK ((config_version > 0))
constraint etl.etl_pipelines etl_pipelines_failed_attempts_check: CHECK ((failed_attempts >= 0))
constraint etl.etl_pipelines etl_pipelines_follow_check: CHECK ((jsonb_typeof(follow) = 'object'::text))
constraint etl.etl_pipelines etl_pipelines_lease_epoch_check: CHECK ((lease_epoch >= 0))
constraint etl.etl_pipelines etl_pipelines_lookback_numbers_check: CHECK ((lookback_numbers >= 0))
constraint etl.etl_pipelines etl_pipelines_lookback_seconds_check: CHECK ((lookback_seconds >= 0))
constraint etl.etl_pipelines etl_pipelines_max_delete_percent_check: CHECK (((max_delete_percent >= 0) AND (max_delete_percent <= 100)))
constraint etl.etl_pipelines etl_pipelines_max_rejects_check: CHECK ((max_rejects >= 0))
constraint etl.etl_pipelines etl_pipelines_mode_check: CHECK ((mode = ANY (ARRAY['full'::text, 'incremental'::text, 'follow'::text])))
constraint etl.etl_pipelines etl_pipelines_name_check: CHECK ((name ~ '^[A-Za-z][A-Za-z0-9_.-]{0,62}$'::text))
constraint etl.etl_pipelines etl_pipelines_name_key: UNIQUE (name)
constraint etl.etl_pipelines etl_pipelines_null_cursor_check: CHECK ((null_cursor = ANY (ARRAY['reject'::text, 'exclude'::text, 'each_run'::text])))
constraint etl.etl_pipelines etl_pipelines_pkey: PRIMARY KEY (id)
constraint etl.etl_pipelines etl_pipelines_retry_for_seconds_check: CHECK (((retry_for_seconds >= 0) AND (retry_for_seconds <= 604800)))
constraint etl.etl_pipelines etl_pipelines_run_id_fkey: FOREIGN KEY (run_id) REFERENCES etl.etl_runs(id)
constraint etl.etl_pipelines etl_pipelines_run_kind_check: CHECK ((run_kind = ANY (ARRAY['load'::text, 'restore'::text])))
constraint etl.etl_pipelines etl_pipelines_run_request_check: CHECK ((run_request >= 0))
constraint etl.etl_pipelines etl_pipelines_run_trigger_check: CHECK ((run_trigger = ANY (ARRAY['api'::text, 'schedule'::text, 'recovery'::text, 'follow_up'::text, 'change'::text, 'sweep'::text])))
constraint etl.etl_pipelines etl_pipelines_source_type_check: CHECK ((source_type ~ '^[a-z][a-z0-9_]{0,30}$'::text))
constraint etl.etl_pipelines etl_pipelines_status_before_check: CHECK ((status_before = ANY (ARRAY['IDLE'::text, 'PAUSED'::text, 'FAILED'::text])))
constraint etl.etl_pipelines etl_pipelines_status_check: CHECK ((status = ANY (ARRAY['IDLE'::text, 'RUN_REQUESTED'::text, 'RUNNING'::text, 'PAUSE_REQUESTED'::text, 'CANCEL_REQUESTED'::text, 'PAUSED'::text, 'FAILED'::text])))
constraint etl.etl_pipelines etl_pipelines_target_options_check: CHECK ((jsonb_typeof(target_options) = 'object'::text))
constraint etl.etl_pipelines etl_pipelines_target_table_check: CHECK ((target_table <> ''::text))
constraint etl.etl_pipelines etl_pipelines_type_check: CHECK ((type = ANY (ARRAY['SQL'::text, 'PYTHON'::text, 'TYPESCRIPT'::text])))
constraint etl.etl_pipelines held_means_run: CHECK (((status = ANY (ARRAY['RUNNING'::text, 'PAUSE_REQUESTED'::text, 'CANCEL_REQUESTED'::text])) = (run_id IS NOT NULL)))
constraint etl.etl_pipelines id_key_needs_a_key: CHECK (((incremental_id_key IS NULL) OR (incremental_key IS NOT NULL)))
constraint etl.etl_pipelines incremental_has_a_key: CHECK (((mode <> 'incremental'::text) OR (incremental_key IS NOT NULL)))
constraint etl.etl_pipelines only_failed_ones_may_pass: CHECK (((NOT failure_may_pass) OR (COALESCE(status_before, status) = 'FAILED'::text)))
constraint etl.etl_pipelines only_requested_ones_wait: CHECK (((not_before IS NULL) OR (status = 'RUN_REQUESTED'::text)))
constraint etl.etl_pipelines planned_means_scheduled: CHECK (((next_run_at IS NULL) OR (enabled AND (schedule_interval IS NOT NULL))))
constraint etl.etl_pipelines planned_or_refused: CHECK (((next_run_at IS NULL) OR (schedule_error IS NULL)))
constraint etl.etl_pipelines planned_sweep_means_enabled: CHECK (((next_sweep_at IS NULL) OR (enabled AND (sweep IS NOT NULL))))
constraint etl.etl_pipelines sweep_planned_or_refused: CHECK (((next_sweep_at IS NULL) OR (sweep_error IS NULL)))
constraint etl.etl_pipelines waiting_has_a_reason: CHECK (((not_before IS NULL) OR ((troubled_since IS NOT NULL) AND (trouble_code IS NOT NULL) AND (trouble IS NOT NULL))))
constraint etl.etl_pipelines waiting_has_a_trigger: CHECK (((status <> 'RUN_REQUESTED'::text) OR ((run_requested_at IS NOT NULL) AND (run_trigger IS NOT NULL))))
constraint etl.etl_rejects etl_rejects_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.etl_rejects etl_rejects_pkey: PRIMARY KEY (id)
constraint etl.etl_rejects etl_rejects_run_id_fkey: FOREIGN KEY (run_id) REFERENCES etl.etl_runs(id) ON DELETE CASCADE
constraint etl.etl_run_logs etl_run_logs_fields_check: CHECK (((json_typeof(fields) = 'object'::text) AND (octet_length((fields)::text) <= 8192)))
constraint etl.etl_run_logs etl_run_logs_level_check: CHECK ((level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text])))
constraint etl.etl_run_logs etl_run_logs_message_check: CHECK ((length(message) <= 500))
constraint etl.etl_run_logs etl_run_logs_pkey: PRIMARY KEY (run_id, id)
constraint etl.etl_run_logs etl_run_logs_run_id_fkey: FOREIGN KEY (run_id) REFERENCES etl.etl_runs(id) ON DELETE CASCADE
constraint etl.etl_runners etl_runners_pkey: PRIMARY KEY (id)
constraint etl.etl_runners etl_runners_report_every_ms_check: CHECK ((report_every_ms > 0))
constraint etl.etl_runs etl_runs_attempt_check: CHECK ((attempt >= 1))
constraint etl.etl_runs etl_runs_batches_check: CHECK ((batches >= 0))
constraint etl.etl_runs etl_runs_bytes_check: CHECK ((bytes >= 0))
constraint etl.etl_runs etl_runs_error_check: CHECK ((length(error) <= 4000))
constraint etl.etl_runs etl_runs_estimated_rows_check: CHECK ((estimated_rows >= 0))
constraint etl.etl_runs etl_runs_kind_check: CHECK ((kind = ANY (ARRAY['load'::text, 'restore'::text, 'reconcile'::text])))
constraint etl.etl_runs etl_runs_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.etl_runs etl_runs_pkey: PRIMARY KEY (id)
constraint etl.etl_runs etl_runs_rows_added_check: CHECK ((rows_added >= 0))
constraint etl.etl_runs etl_runs_rows_deleted_check: CHECK ((rows_deleted >= 0))
constraint etl.etl_runs etl_runs_run_request_check: CHECK ((run_request >= 0))
constraint etl.etl_runs etl_runs_status_check: CHECK ((status = ANY (ARRAY['REQUESTED'::text, 'RUNNING'::text, 'SUCCESS'::text, 'FAILED'::text, 'PAUSED'::text, 'HANDED_BACK'::text, 'CANCELLED'::text])))
constraint etl.etl_runs etl_runs_trigger_check: CHECK ((trigger = ANY (ARRAY['api'::text, 'schedule'::text, 'recovery'::text, 'follow_up'::text, 'change'::text, 'sweep'::text])))
constraint etl.etl_runs etl_runs_verdict_check: CHECK ((verdict = ANY (ARRAY['MATCH'::text, 'DIFFERENT'::text, 'INCONCLUSIVE'::text])))
constraint etl.etl_runs failed_says_why: CHECK (((status = 'FAILED'::text) = ((error IS NOT NULL) AND (error_code IS NOT NULL))))
constraint etl.etl_runs finished_when_ended: CHECK (((status = ANY (ARRAY['REQUESTED'::text, 'RUNNING'::text])) = (finished_at IS NULL)))
constraint etl.etl_runs judged_by_a_report: CHECK ((((kind = 'reconcile'::text) OR ((verdict IS NULL) AND (report IS NULL))) AND ((report IS NULL) OR (verdict IS NOT NULL)) AND ((kind <> 'reconcile'::text) OR (status <> 'SUCCESS'::text) OR (report IS NOT NULL)) AND ((verdict IS NULL) OR (report IS NOT NULL) OR ((verdict = 'INCONCLUSIVE'::text) AND (status = 'FAILED'::text)))))
constraint etl.etl_runs only_reconciles_are_asked_for_singly: CHECK ((((kind = 'reconcile'::text) = ((requested_by IS NOT NULL) AND (requested_at IS NOT NULL))) AND ((kind = 'reconcile'::text) OR (status <> 'REQUESTED'::text))))
constraint etl.etl_runs rows_balance: CHECK (((kind = 'reconcile'::text) OR (((rows_read + rows_added) = ((((rows_written + rows_unchanged) + rows_deduplicated) + rows_rejected) + rows_dropped)) AND (LEAST(rows_written, rows_unchanged, rows_deduplicated, rows_rejected, rows_dropped) >= 0))))
constraint etl.etl_runs running_means_leased: CHECK ((((status = 'RUNNING'::text) = (lease_expires_at IS NOT NULL)) AND ((status = 'REQUESTED'::text) OR (runner_id IS NOT NULL))))
constraint etl.etl_state candidate_is_whole: CHECK (((candidate_value IS NULL) = (candidate_at IS NULL)))
constraint etl.etl_state etl_state_batch_no_check: CHECK ((batch_no >= 0))
constraint etl.etl_state etl_state_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.etl_state etl_state_pkey: PRIMARY KEY (pipeline_id)
constraint etl.etl_state position_has_a_fingerprint: CHECK (((scan_position IS NULL) OR (fingerprint IS NOT NULL)))
constraint etl.follow_state comparing_has_a_reason: CHECK (((compare_position IS NULL) OR (compare_reason IS NOT NULL)))
constraint etl.follow_state follow_position_has_a_fingerprint: CHECK ((("position" IS NULL) OR (fingerprint IS NOT NULL)))
constraint etl.follow_state follow_state_compares_check: CHECK ((compares >= 0))
constraint etl.follow_state follow_state_last_repaired_check: CHECK ((last_repaired >= 0))
constraint etl.follow_state follow_state_pipeline_id_fkey: FOREIGN KEY (pipeline_id) REFERENCES etl.etl_pipelines(id) ON DELETE CASCADE
constraint etl.follow_state follow_state_pkey: PRIMARY KEY (pipeline_id)
constraint etl.follow_state follow_state_repaired_check: CHECK ((repaired >= 0))
constraint etl.follow_state follow_state_sweep_next_check: CHECK ((jsonb_typeof(sweep_next) = 'object'::text))
constraint etl.schema_migrations schema_migrations_pkey: PRIMARY KEY (version)

CREATE INDEX api_keys_newest ON etl.api_keys USING btree (created_at DESC, id DESC)
CREATE INDEX audit_log_of_actor ON etl.audit_log USING btree (actor, id DESC)
CREATE INDEX audit_log_of_object ON etl.audit_log USING btree (object, id DESC)
CREATE INDEX etl_abandoned_targets_due ON etl.etl_abandoned_targets USING btree (look_after, id)
CREATE INDEX etl_answers_oldest ON etl.etl_answers USING btree (begun_at)
CREATE INDEX etl_pipelines_by_name ON etl.etl_pipelines USING btree (name COLLATE "C")
CREATE INDEX etl_pipelines_changed ON etl.etl_pipelines USING btree (changed_xid)
CREATE INDEX etl_pipelines_following ON etl.etl_pipelines USING btree (id) WHERE (enabled AND (mode = 'follow'::text))
CREATE INDEX etl_pipelines_scheduled ON etl.etl_pipelines USING btree (next_run_at NULLS FIRST, id) WHERE (enabled AND (schedule_interval IS NOT NULL) AND (schedule_error IS NULL))
CREATE INDEX etl_pipelines_stopped ON etl.etl_pipelines USING btree (name COLLATE "C") WHERE (status = ANY (ARRAY['PAUSED'::text, 'FAILED'::text]))
CREATE INDEX etl_pipelines_swept ON etl.etl_pipelines USING btree (next_sweep_at NULLS FIRST, id) WHERE (enabled AND (sweep IS NOT NULL) AND (sweep_error IS NULL))
CREATE INDEX etl_pipelines_to_sweep ON etl.etl_pipelines USING btree (id) WHERE (sweep_wanted_at IS NOT NULL)
CREATE INDEX etl_pipelines_waiting ON etl.etl_pipelines USING btree (run_requested_at, id) WHERE (enabled AND (status = 'RUN_REQUESTED'::text))
CREATE INDEX etl_rejects_newest ON etl.etl_rejects USING btree (pipeline_id, id DESC)
CREATE INDEX etl_rejects_of_failed_run ON etl.etl_rejects USING btree (pipeline_id) WHERE of_failed_run
CREATE INDEX etl_rejects_to_retry ON etl.etl_rejects USING btree (pipeline_id, id) WHERE (retry_requested_at IS NOT NULL)
CREATE INDEX etl_runs_changed ON etl.etl_runs USING btree (changed_xid)
CREATE INDEX etl_runs_newest ON etl.etl_runs USING btree (pipeline_id, started_at DESC, id DESC)
CREATE INDEX etl_runs_newest_of_all ON etl.etl_runs USING btree (started_at DESC, id DESC)
CREATE INDEX etl_runs_newest_stopped ON etl.etl_runs USING btree (started_at DESC, id DESC) WHERE (status = ANY (ARRAY['PAUSED'::text, 'FAILED'::text]))
CREATE INDEX etl_runs_newest_success ON etl.etl_runs USING btree (pipeline_id, started_at DESC) WHERE ((status = 'SUCCESS'::text) AND (kind = 'load'::text))
CREATE INDEX etl_runs_oldest ON etl.etl_runs USING btree (finished_at) WHERE (finished_at IS NOT NULL)
CREATE INDEX etl_runs_other_kinds ON etl.etl_runs USING btree (pipeline_id, started_at DESC, id DESC) WHERE (kind <> 'load'::text)
CREATE INDEX etl_runs_other_kinds_of_all ON etl.etl_runs USING btree (started_at DESC, id DESC) WHERE (kind <> 'load'::text)
CREATE UNIQUE INDEX api_keys_pkey ON etl.api_keys USING btree (id)
CREATE UNIQUE INDEX audit_log_pkey ON etl.audit_log USING btree (id)
CREATE UNIQUE INDEX etl_abandoned_targets_pkey ON etl.etl_abandoned_targets USING btree (id)
CREATE UNIQUE INDEX etl_answers_pkey ON etl.etl_answers USING btree (actor, key, operation)
CREATE UNIQUE INDEX etl_pipeline_tasks_pipeline_id_order_index_key ON etl.etl_pipeline_tasks USING btree (pipeline_id, order_index)
CREATE UNIQUE INDEX etl_pipeline_tasks_pkey ON etl.etl_pipeline_tasks USING btree (id)
CREATE UNIQUE INDEX etl_pipeline_versions_pkey ON etl.etl_pipeline_versions USING btree (pipeline_id, version)
CREATE UNIQUE INDEX etl_pipelines_held ON etl.etl_pipelines USING btree (run_id) WHERE (run_id IS NOT NULL)
CREATE UNIQUE INDEX etl_pipelines_name_key ON etl.etl_pipelines USING btree (name)
CREATE UNIQUE INDEX etl_pipelines_pkey ON etl.etl_pipelines USING btree (id)
CREATE UNIQUE INDEX etl_rejects_pkey ON etl.etl_rejects USING btree (id)
CREATE UNIQUE INDEX etl_run_logs_pkey ON etl.etl_run_logs USING btree (run_id, id)
CREATE UNIQUE INDEX etl_runners_pkey ON etl.etl_runners USING btree (id)
CREATE UNIQUE INDEX etl_runs_one_at_a_time ON etl.etl_runs USING btree (pipeline_id, lane) WHERE (status = ANY (ARRAY['REQUESTED'::text, 'RUNNING'::text]))
CREATE UNIQUE INDEX etl_runs_pkey ON etl.etl_runs USING btree (id)
CREATE UNIQUE INDEX etl_state_pkey ON etl.etl_state USING btree (pipeline_id)
CREATE UNIQUE INDEX follow_state_pkey ON etl.follow_state USING btree (pipeline_id)
CREATE UNIQUE INDEX schema_migrations_pkey ON etl.schema_migrations USING btree (version)

CREATE TRIGGER complete_run_request BEFORE INSERT OR UPDATE OF status ON etl.etl_pipelines FOR EACH ROW WHEN ((new.status = 'RUN_REQUESTED'::text)) EXECUTE FUNCTION etl.complete_run_request()
CREATE TRIGGER forget_plan BEFORE UPDATE OF schedule_interval, enabled ON etl.etl_pipelines FOR EACH ROW WHEN (((old.schedule_interval IS DISTINCT FROM new.schedule_interval) OR (old.enabled IS DISTINCT FROM new.enabled))) EXECUTE FUNCTION etl.forget_plan()
CREATE TRIGGER forget_sweep_plan BEFORE UPDATE OF sweep, enabled ON etl.etl_pipelines FOR EACH ROW WHEN (((old.sweep IS DISTINCT FROM new.sweep) OR (old.enabled IS DISTINCT FROM new.enabled))) EXECUTE FUNCTION etl.forget_sweep_plan()
CREATE TRIGGER forget_trouble BEFORE INSERT OR UPDATE OF status ON etl.etl_pipelines FOR EACH ROW EXECUTE FUNCTION etl.forget_trouble()
CREATE TRIGGER note_abandoned_target AFTER UPDATE OF target_table ON etl.etl_pipelines FOR EACH ROW WHEN ((old.target_table IS DISTINCT FROM new.target_table)) EXECUTE FUNCTION etl.note_abandoned_target()
CREATE TRIGGER note_abandoned_target_of_deleted AFTER DELETE ON etl.etl_pipelines FOR EACH ROW EXECUTE FUNCTION etl.note_abandoned_target()
CREATE TRIGGER notify_runners AFTER INSERT OR UPDATE OF status ON etl.etl_runs FOR EACH ROW WHEN ((new.status = 'REQUESTED'::text)) EXECUTE FUNCTION etl.notify_runners()
CREATE TRIGGER notify_runners AFTER INSERT OR UPDATE OF status, enabled ON etl.etl_pipelines FOR EACH ROW WHEN ((new.enabled AND (new.status = ANY (ARRAY['RUN_REQUESTED'::text, 'PAUSE_REQUESTED'::text])))) EXECUTE FUNCTION etl.notify_runners()
CREATE TRIGGER notify_runners_of_schedule AFTER INSERT OR UPDATE OF schedule_interval, enabled ON etl.etl_pipelines FOR EACH ROW WHEN ((new.enabled AND (new.schedule_interval IS NOT NULL) AND (new.next_run_at IS NULL) AND (new.schedule_error IS NULL))) EXECUTE FUNCTION etl.notify_runners()
CREATE TRIGGER notify_runners_of_sweep AFTER INSERT OR UPDATE OF sweep, enabled ON etl.etl_pipelines FOR EACH ROW WHEN ((new.enabled AND (new.sweep IS NOT NULL) AND (new.next_sweep_at IS NULL) AND (new.sweep_error IS NULL))) EXECUTE FUNCTION etl.notify_runners()
CREATE TRIGGER notify_watchers AFTER UPDATE OF status ON etl.etl_runs FOR EACH ROW WHEN ((old.status IS DISTINCT FROM new.status)) EXECUTE FUNCTION etl.notify_watchers()
CREATE TRIGGER notify_watchers AFTER UPDATE OF status, enabled, config_version ON etl.etl_pipelines FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.enabled IS DISTINCT FROM new.enabled)) OR (old.config_version IS DISTINCT FROM new.config_version))) EXECUTE FUNCTION etl.notify_watchers()
CREATE TRIGGER notify_watchers_of_new AFTER INSERT ON etl.etl_pipelines FOR EACH ROW EXECUTE FUNCTION etl.notify_watchers()
CREATE TRIGGER notify_watchers_of_new AFTER INSERT ON etl.etl_runs FOR EACH ROW EXECUTE FUNCTION etl.notify_watchers()
CREATE TRIGGER stamp_change BEFORE UPDATE OF status ON etl.etl_runs FOR EACH ROW WHEN ((old.status IS DISTINCT FROM new.status)) EXECUTE FUNCTION etl.stamp_change()
CREATE TRIGGER stamp_change BEFORE UPDATE OF status, enabled, config_version ON etl.etl_pipelines FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.enabled IS DISTINCT FROM new.enabled)) OR (old.config_version IS DISTINCT FROM new.config_version))) EXECUTE FUNCTION etl.stamp_change()

CREATE OR REPLACE FUNCTION etl.complete_run_request()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  NEW.run_requested_at := coalesce(NEW.run_requested_at, clock_timestamp());
  NEW.run_trigger := coalesce(NEW.run_trigger, 'api');
  IF TG_OP = 'INSERT' OR OLD.status IN ('IDLE', 'PAUSED', 'FAILED') THEN
    NEW.run_request := NEW.run_request + 1;
  END IF;
  RETURN NEW;
END
$function$

CREATE OR REPLACE FUNCTION etl.forget_plan()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  NEW.next_run_at := NULL;
  NEW.schedule_error := NULL;
  RETURN NEW;
END
$function$

CREATE OR REPLACE FUNCTION etl.forget_sweep_plan()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  NEW.next_sweep_at := NULL;
  NEW.sweep_error := NULL;
  NEW.sweep_wanted_at := NULL;
  RETURN NEW;
END
$function$

CREATE OR REPLACE FUNCTION etl.forget_trouble()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  IF NEW.status <> 'RUN_REQUESTED' THEN
    NEW.not_before := NULL;
  END IF;
  IF NEW.status IN ('IDLE', 'PAUSED', 'FAILED') THEN
    NEW.status_before := NULL;
    NEW.troubled_since := NULL;
    NEW.failed_attempts := 0;
    NEW.trouble_code := NULL;
    NEW.trouble := NULL;
    NEW.run_kind := 'load';
  ELSE
    NEW.status_before := coalesce(NEW.status_before, OLD.status, 'IDLE');
  END IF;
  IF coalesce(NEW.status_before, NEW.status) <> 'FAILED' THEN
    NEW.failure_may_pass := false;
  END IF;
  RETURN NEW;
END
$function$

CREATE OR REPLACE FUNCTION etl.note_abandoned_target()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  INSERT INTO etl.etl_abandoned_targets (pipeline_id, target_table, target_options)
  VALUES (OLD.id, OLD.target_table, OLD.target_options);
  RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION etl.notify_runners()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  PERFORM pg_notify('vitrina_pipelines', NEW.id::text);
  RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION etl.notify_watchers()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  IF TG_TABLE_NAME = 'etl_runs' THEN
    PERFORM pg_notify('vitrina_changes', NEW.pipeline_id::text);
  ELSE
    PERFORM pg_notify('vitrina_changes', NEW.id::text);
  END IF;
  RETURN NULL;
END
$function$

CREATE OR REPLACE FUNCTION etl.stamp_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
BEGIN
  NEW.changed_xid := pg_current_xact_id();
  RETURN NEW;
END
$function$


grant DELETE on etl.etl_abandoned_targets to vitrina_meta
grant DELETE on etl.etl_answers to vitrina_meta
grant DELETE on etl.etl_pipeline_tasks to vitrina_meta
grant DELETE on etl.etl_pipelines to vitrina_meta
grant DELETE on etl.etl_rejects to vitrina_meta
grant DELETE on etl.etl_rejects to vitrina_writer
grant DELETE on etl.etl_runners to vitrina_meta
grant DELETE on etl.etl_runs to vitrina_meta
grant DELETE on etl.etl_state to vitrina_meta
grant DELETE on etl.follow_state to vitrina_meta
grant INSERT on etl.api_keys to vitrina_meta
grant INSERT on etl.audit_log to vitrina_meta
grant INSERT on etl.etl_abandoned_targets to vitrina_meta
grant INSERT on etl.etl_answers to vitrina_meta
grant INSERT on etl.etl_pipeline_tasks to vitrina_meta
grant INSERT on etl.etl_pipeline_versions to vitrina_meta
grant INSERT on etl.etl_pipelines to vitrina_meta
grant INSERT on etl.etl_rejects to vitrina_meta
grant INSERT on etl.etl_rejects to vitrina_writer
grant INSERT on etl.etl_run_logs to vitrina_meta
grant INSERT on etl.etl_runners to vitrina_meta
grant INSERT on etl.etl_runs to vitrina_meta
grant INSERT on etl.etl_state to vitrina_meta
grant INSERT on etl.follow_state to vitrina_meta
grant SELECT on etl.api_keys to vitrina_meta
grant SELECT on etl.audit_log to vitrina_meta
grant SELECT on etl.etl_abandoned_targets to vitrina_meta
grant SELECT on etl.etl_answers to vitrina_meta
grant SELECT on etl.etl_pipeline_tasks to vitrina_meta
grant SELECT on etl.etl_pipeline_versions to vitrina_meta
grant SELECT on etl.etl_pipelines to vitrina_meta
grant SELECT on etl.etl_rejects to vitrina_meta
grant SELECT on etl.etl_run_logs to vitrina_meta
grant SELECT on etl.etl_runners to vitrina_meta
grant SELECT on etl.etl_runs to vitrina_meta
grant SELECT on etl.etl_runs to vitrina_writer
grant SELECT on etl.etl_state to vitrina_meta
grant SELECT on etl.etl_state to vitrina_writer
grant SELECT on etl.follow_state to vitrina_meta
grant SELECT on etl.schema_migrations to vitrina_meta
grant UPDATE on etl.etl_abandoned_targets to vitrina_meta
grant UPDATE on etl.etl_answers to vitrina_meta
grant UPDATE on etl.etl_pipeline_tasks to vitrina_meta
grant UPDATE on etl.etl_pipelines to vitrina_meta
grant UPDATE on etl.etl_rejects to vitrina_meta
grant UPDATE on etl.etl_runners to vitrina_meta
grant UPDATE on etl.etl_runs to vitrina_meta
grant UPDATE on etl.etl_state to vitrina_meta
grant UPDATE on etl.etl_state to vitrina_writer
grant UPDATE on etl.follow_state to vitrina_meta

grant SELECT (batch_size, config_version, enabled, id, lease_epoch, max_delete_percent, max_rejects, run_id, status) on etl.etl_pipelines to vitrina_writer
grant SELECT (id, of_failed_run, pipeline_id) on etl.etl_rejects to vitrina_writer
grant UPDATE (applied_version, batches, bytes, read_ms, rows_added, rows_deduplicated, rows_deleted, rows_dropped, rows_read, rows_rejected, rows_unchanged, rows_written, transform_ms, write_ms) on etl.etl_runs to vitrina_writer
grant UPDATE (last_used_at, revoked_at) on etl.api_keys to vitrina_meta
