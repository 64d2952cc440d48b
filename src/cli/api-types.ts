// Made by scripts/api-types.ts from /openapi.json; do not edit. To regenerate it:
//   UPDATE_API_TYPES=1 npx vitest run tests/cli/api-types.test.ts

export type Pipeline = {
  /** Unique name; usable instead of the id in every path. */
  readonly name: string;
  /** What the pipeline is for. */
  readonly description: string;
  /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
  readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
  readonly source_type: "postgres";
  /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
  readonly source_connection: string;
  /** One SELECT. Ignored when the pipeline has tasks. */
  readonly source_query: string;
  /** analytics.<table> or es:<index>. */
  readonly target_table: string;
  /** Key columns of the target; empty: the target's primary key. */
  readonly target_key: readonly string[];
  /** Options that only some kinds of target have. */
  readonly target_options: {
    /** Index: the definition of a field, instead of the one that follows from the column's type. */
    readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    /** Index: its settings, such as analysis or number_of_shards. */
    readonly settings?: Readonly<Record<string, unknown>>;
    /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
    readonly keep_previous_hours?: number;
    /** Index: a boolean column; a row in which it is true is deleted instead of written. */
    readonly delete_when?: string;
    /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
    readonly adopt?: boolean;
    /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
    readonly write?: "replace" | "merge";
  };
  /** Create the target from the query's column types when it is missing. */
  readonly create_target: boolean;
  /** Add columns of the query that the target lacks, instead of refusing to run. */
  readonly add_columns: boolean;
  /** Full and follow mode: let a source without rows empty the target. */
  readonly allow_empty: boolean;
  /** Full and follow mode: refuse to delete a larger share of the target at once. */
  readonly max_delete_percent: number;
  /** Fail when the target refuses more rows than this in a run. */
  readonly max_rejects: number;
  /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
  readonly mode: "full" | "incremental" | "follow";
  /** Follow mode: how the changes of the source are followed. */
  readonly follow: {
    /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
    readonly check_every_seconds: number;
    /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
    readonly full_compare_above_percent: number;
    /** Compare the whole mart when more rows than this have changed. */
    readonly max_changes: number;
    /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
    readonly sweep_parts: number;
    /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
    readonly tables: Readonly<Record<string, {
        /** The columns of this table that are the mart's key, in its order. */
        readonly key_columns: readonly string[];
      } | {
        /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
        readonly on_change: "everything" | "ignore";
      } | {
        /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
        readonly keys: string;
      }>>;
  };
  /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
  readonly sweep: string | null;
  readonly incremental_key: string | null;
  readonly incremental_id_key: string | null;
  /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
  readonly null_cursor: "reject" | "exclude" | "each_run";
  /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
  readonly lookback_seconds: number;
  /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
  readonly lookback_numbers: number;
  /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
  readonly batch_size: number;
  /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
  readonly retry_for_seconds: number;
  readonly enabled: boolean;
  /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
  readonly schedule_interval: string | null;
  /** The task plan; empty: source_query alone. */
  readonly tasks: readonly {
    /** Position in the plan, from 1. */
    readonly order_index: number;
    /** SQL for the first task, then TYPESCRIPT or PYTHON. */
    readonly task_type: string;
    /** The query, or the name of a registered task and its parameters as JSON. */
    readonly body: string;
    /** Must be null: the query names what is read. */
    readonly source_table: string | null;
    /** Only the last task may override the pipeline's target. */
    readonly target_table: string | null;
  }[];
  readonly id: string;
  readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
  /** Counts the requests to run; the runs of a request carry its number. */
  readonly run_request: number;
  /** Set while it waits for a temporary problem to go away. */
  readonly waiting: {
    /** The code of the last attempt's error. */
    readonly code: string;
    readonly reason: string;
    /** When the problem began; a committed batch ends it. */
    readonly since: string;
    /** When the next attempt starts; requesting a run starts it at once. */
    readonly until: string;
  } | null;
  /** When the schedule fires next; null without one, or while it is planned. */
  readonly next_run_at: string | null;
  readonly config_version: number;
  readonly created_at: string;
  readonly updated_at: string;
};

export type Run = {
  readonly id: string;
  readonly pipeline_id: string;
  readonly pipeline_name: string;
  /** load: moves rows; restore: brings the previous target back; reconcile: compares source and target. */
  readonly kind: "load" | "restore" | "reconcile";
  /** Which request it serves; every attempt of one request has the same number. 0 for a reconcile. */
  readonly run_request: number;
  readonly attempt: number;
  /** REQUESTED: a reconcile that waits for a runner. HANDED_BACK: its runner was stopped, and another one goes on. CANCELLED: somebody ended it. */
  readonly status: "REQUESTED" | "RUNNING" | "SUCCESS" | "FAILED" | "PAUSED" | "HANDED_BACK" | "CANCELLED";
  /** recovery: continues for a runner that was lost; follow_up: reads everything again after a full load that was interrupted and resumed; change: the source has changed; sweep: everything is to be compared and repaired. */
  readonly trigger: "api" | "schedule" | "recovery" | "follow_up" | "change" | "sweep";
  /** The version it began with. */
  readonly config_version: number;
  /** The newest version that it has adopted, between two batches. */
  readonly applied_version: number;
  /** Null before a runner has taken it. */
  readonly runner_id: string | null;
  /** While it is REQUESTED: since when. */
  readonly started_at: string;
  readonly finished_at: string | null;
  /** So far, while it runs. Waiting before an attempt is not counted. */
  readonly duration_ms: number;
  readonly rows_read: number;
  /** Inserted or changed in the target. */
  readonly rows_written: number;
  /** Already in the target as they are. */
  readonly rows_unchanged: number;
  /** Left out because a later row has the same key. */
  readonly rows_deduplicated: number;
  /** Set aside because the target refused them. */
  readonly rows_rejected: number;
  /** Left out by a transform. */
  readonly rows_dropped: number;
  /** Made by a transform beyond one per row read. */
  readonly rows_added: number;
  readonly rows_deleted: number;
  readonly batches: number;
  /** What the source's planner expects it to read; an estimate. */
  readonly estimated_rows: number | null;
  /** How the rows of a load travel: push-down, stream or rows. */
  readonly data_path: string | null;
  /** How they become visible in the target. */
  readonly strategy: string | null;
  /** Rows read per second, over the whole run so far. */
  readonly rows_per_second: number;
  /** Read from the source, where known. */
  readonly bytes: number;
  readonly read_ms: number;
  readonly transform_ms: number;
  readonly write_ms: number;
  /** It continues a load that an earlier run did not finish. */
  readonly resumed: boolean;
  /** What a person should know about it, such as why it read everything again. */
  readonly notes: readonly string[];
  readonly error_code: string | null;
  readonly error: string | null;
};

export type Reconcile = {
  /** Also the id of its run. */
  readonly id: string;
  readonly pipeline_id: string;
  /** INCONCLUSIVE: a run at the same time may explain the differences, or there was not enough time. */
  readonly status: "WAITING" | "RUNNING" | "MATCH" | "DIFFERENT" | "INCONCLUSIVE" | "FAILED";
  readonly requested_by: string;
  readonly requested_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** The configuration that was compared; null before it began. */
  readonly config_version: number | null;
  readonly runner_id: string | null;
  /** Rows of the source compared so far. */
  readonly rows_compared: number;
  readonly report: {
    readonly source: {
      /** Rows of the query. */
      readonly rows_read: number;
      /** Rows after the code tasks. */
      readonly rows: number;
      /** Rows whose key comes again later; the last one counts. */
      readonly rows_duplicate: number;
      /** Rows with a value that does not fit the target's types. */
      readonly rows_refused: number;
      /** The first key; text sorts by bytes. Null when there are no rows. */
      readonly key_min: Readonly<Record<string, string | null>> | null;
      readonly key_max: Readonly<Record<string, string | null>> | null;
      readonly incremental_key_min: string | null;
      readonly incremental_key_max: string | null;
    };
    readonly target: {
      readonly rows: number;
      /** The first key; text sorts by bytes. Null when there are no rows. */
      readonly key_min: Readonly<Record<string, string | null>> | null;
      readonly key_max: Readonly<Record<string, string | null>> | null;
      readonly incremental_key_min: string | null;
      readonly incremental_key_max: string | null;
    };
    /** In the source, not in the target. */
    readonly missing: {
      readonly count: number;
      /** The first 100. */
      readonly keys: readonly (Readonly<Record<string, string | null>>)[];
    };
    /** In the target, not in the source. */
    readonly extra: {
      readonly count: number;
      /** The first 100. */
      readonly keys: readonly (Readonly<Record<string, string | null>>)[];
    };
    /** In both, with different values. */
    readonly different: {
      readonly count: number;
      /** The first 100. */
      readonly keys: readonly {
        /** The key columns and their exact texts. */
        readonly key: Readonly<Record<string, string | null>>;
        /** The columns that differ. */
        readonly columns: readonly string[];
      }[];
    };
    /** Incremental mode: missing or different, but the next run will read them. */
    readonly pending: {
      readonly count: number;
      /** The first 100. */
      readonly keys: readonly (Readonly<Record<string, string | null>>)[];
    };
    readonly compared_columns: readonly string[];
    /** How often both sides were read; they are read again when a run interferes. */
    readonly passes: number;
    /** What explains the differences, in sentences. */
    readonly notes: readonly string[];
  } | null;
  readonly error_code: string | null;
  readonly error: string | null;
};

export type Problem = {
  /** Names the kind of problem; as stable as the code. */
  readonly type: string;
  /** The kind of problem in a few words. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** What went wrong this time. */
  readonly detail: string;
  /** The path that was asked. */
  readonly instance: string;
  /** Stable; programs decide by it. */
  readonly code: string;
  /** What to do next. */
  readonly hint: string;
  /** Every mistake in the request. */
  readonly errors?: readonly {
    /** JSON pointer to the field. */
    readonly pointer: string;
    readonly message: string;
    /** Where in the query, from 1. */
    readonly line?: number;
    readonly column?: number;
  }[];
  /** The role that the operation needs. */
  readonly role_needed?: string;
  /** The role that the caller has. */
  readonly role_held?: string | null;
  /** The status that does not allow the request. */
  readonly pipeline_status?: string;
  /** Where in the query, from 1. */
  readonly line?: number;
  readonly column?: number;
  /** The version that If-Match does not fit. */
  readonly config_version?: number;
  /** Find the request in the log by it. */
  readonly request_id?: string;
  readonly [other: string]: unknown;
};

export interface Operations {
  /** Create or change several pipelines, all or none */
  applyPipelines: {
    body: {
      readonly pipelines: readonly {
        /** Unique name; usable instead of the id in every path. */
        readonly name: string;
        /** What the pipeline is for. */
        readonly description?: string;
        /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
        readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
        readonly source_type?: "postgres";
        /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
        readonly source_connection?: string;
        /** One SELECT. Ignored when the pipeline has tasks. */
        readonly source_query?: string;
        /** analytics.<table> or es:<index>. */
        readonly target_table?: string;
        /** Key columns of the target; empty: the target's primary key. */
        readonly target_key?: readonly string[];
        /** Options that only some kinds of target have. */
        readonly target_options?: {
          /** Index: the definition of a field, instead of the one that follows from the column's type. */
          readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
          /** Index: its settings, such as analysis or number_of_shards. */
          readonly settings?: Readonly<Record<string, unknown>>;
          /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
          readonly keep_previous_hours?: number;
          /** Index: a boolean column; a row in which it is true is deleted instead of written. */
          readonly delete_when?: string;
          /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
          readonly adopt?: boolean;
          /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
          readonly write?: "replace" | "merge";
        };
        /** Create the target from the query's column types when it is missing. */
        readonly create_target?: boolean;
        /** Add columns of the query that the target lacks, instead of refusing to run. */
        readonly add_columns?: boolean;
        /** Full and follow mode: let a source without rows empty the target. */
        readonly allow_empty?: boolean;
        /** Full and follow mode: refuse to delete a larger share of the target at once. */
        readonly max_delete_percent?: number;
        /** Fail when the target refuses more rows than this in a run. */
        readonly max_rejects?: number;
        /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
        readonly mode?: "full" | "incremental" | "follow";
        /** Follow mode: how the changes of the source are followed. */
        readonly follow?: {
          /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
          readonly check_every_seconds?: number;
          /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
          readonly full_compare_above_percent?: number;
          /** Compare the whole mart when more rows than this have changed. */
          readonly max_changes?: number;
          /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
          readonly sweep_parts?: number;
          /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
          readonly tables?: Readonly<Record<string, {
              /** The columns of this table that are the mart's key, in its order. */
              readonly key_columns: readonly string[];
            } | {
              /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
              readonly on_change: "everything" | "ignore";
            } | {
              /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
              readonly keys: string;
            }>>;
        };
        /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
        readonly sweep?: string | null;
        readonly incremental_key?: string | null;
        readonly incremental_id_key?: string | null;
        /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
        readonly null_cursor?: "reject" | "exclude" | "each_run";
        /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
        readonly lookback_seconds?: number;
        /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
        readonly lookback_numbers?: number;
        /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
        readonly batch_size?: number;
        /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
        readonly retry_for_seconds?: number;
        readonly enabled?: boolean;
        /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
        readonly schedule_interval?: string | null;
        /** The task plan; empty: source_query alone. */
        readonly tasks?: readonly {
          /** Position in the plan, from 1. */
          readonly order_index: number;
          /** SQL for the first task, then TYPESCRIPT or PYTHON. */
          readonly task_type: string;
          /** The query, or the name of a registered task and its parameters as JSON. */
          readonly body: string;
          /** Must be null: the query names what is read. */
          readonly source_table?: string | null;
          /** Only the last task may override the pipeline's target. */
          readonly target_table?: string | null;
        }[];
        readonly id?: string;
      }[];
    };
    answer: {
      readonly pipelines: readonly {
        readonly done: "created" | "changed" | "unchanged";
        readonly pipeline: Pipeline;
        /** What could not be checked, and what a run survives. */
        readonly warnings: readonly {
          /** Stable; programs decide by it. */
          readonly code: string;
          /** With an error a run fails; a warning it survives. */
          readonly severity: "error" | "warning";
          /** JSON pointer to the field; empty: the pipeline as a whole. */
          readonly pointer: string;
          readonly message: string;
          /** What to do next. */
          readonly hint: string;
          /** Where in the query, from 1. */
          readonly line?: number;
          readonly column?: number;
        }[];
      }[];
    };
  };
  /** Cancel a run, or the request for one */
  cancelPipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Pipeline;
  };
  /** Make a key */
  createKey: {
    body: {
      /** Who or what uses the key; the audit log shows it. */
      readonly name: string;
      readonly role: "viewer" | "operator" | "editor" | "admin";
      /** How long the key is valid, such as 30m, 12h or 90d. Without it and expires_at: until revoked. */
      readonly expires_in?: string;
      readonly expires_at?: string;
    };
    answer: {
      readonly id: string;
      readonly name: string;
      readonly role: "viewer" | "operator" | "editor" | "admin";
      readonly created_at: string;
      readonly created_by: string;
      readonly expires_at: string | null;
      /** To the minute. */
      readonly last_used_at: string | null;
      readonly revoked_at: string | null;
      /** Shown only this once: null when the same request is repeated. */
      readonly key: string | null;
    };
  };
  /** Create a pipeline */
  createPipeline: {
    body: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
      readonly id?: string;
    };
    answer: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep: string | null;
      readonly incremental_key: string | null;
      readonly incremental_id_key: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds: number;
      readonly enabled: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
      readonly id: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Counts the requests to run; the runs of a request carry its number. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** When the schedule fires next; null without one, or while it is planned. */
      readonly next_run_at: string | null;
      readonly config_version: number;
      readonly created_at: string;
      readonly updated_at: string;
      /** What could not be checked, and what a run survives; left out when there is nothing. */
      readonly warnings?: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
    };
  };
  /** Delete a pipeline */
  deletePipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: undefined;
  };
  /** Compare a version with another */
  diffVersions: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The number of the version. */
      readonly version: number;
    };
    query?: {
      /** The other version; the one before, if it is left out. */
      readonly with?: number;
    };
    answer: {
      readonly version: number;
      /** The version it is compared with. */
      readonly with: number;
      readonly changes: readonly {
        readonly field: string;
        readonly before: unknown;
        readonly after: unknown;
      }[];
    };
  };
  /** Forget rejected rows */
  discardRejects: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body: {
      /** The ids of rejects. */
      readonly ids?: readonly number[];
      readonly all?: true;
    };
    answer: {
      readonly discarded: number;
    };
  };
  /** Show how changes find their keys */
  getFollowPlan: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: {
      readonly pipeline: string;
      /** Other than follow: this is how it would follow its source. */
      readonly mode: "full" | "incremental" | "follow";
      readonly key: readonly string[];
      readonly tables: readonly {
        readonly table: string;
        /** keys: those that the statement finds are computed again. everything: the whole mart is compared. */
        readonly on_change: "keys" | "everything" | "ignore";
        /** Finds the keys that changes of the table concern. changed(t) stands for the rows of t that changed, as they were and as they are; old(t) for those that t had before. */
        readonly statement: string | null;
        /** The columns of a changed row that the source has to record. */
        readonly recorded_columns: readonly {
          readonly name: string;
          /** As SQL writes it: numeric(3,1). */
          readonly type: string;
        }[];
        /** The columns that the query reads; a change of others changes no mart. */
        readonly read_columns: readonly string[];
        /** Null: it could not be found out. */
        readonly recording: "recorded" | "missing" | "different" | null;
        /** What is different. */
        readonly recording_problem: string | null;
        /** SQL for the owner of the source. */
        readonly missing_indexes: readonly string[];
        /** Large tables that the statement reads as a whole without any index missing, and why, as sentences. */
        readonly whole_tables: readonly string[];
      }[];
      readonly refusals: readonly {
        readonly table: string | null;
        readonly message: string;
        /** What to do about it. */
        readonly way_out: string;
        /** Where the table stands in the query, from 1; not where only a view reads it. */
        readonly line?: number;
        readonly column?: number;
      }[];
      readonly warnings: readonly string[];
      /** The query as it is run for some keys, which stand as '…' here; null with refusals. */
      readonly query_for_keys: string | null;
    };
  };
  /** Print what the owner of a source runs */
  getFollowScript: {
    params: {
      /** The source_connection of the pipelines. */
      readonly connection: string;
    };
    query?: {
      /** Instead, take everything away. */
      readonly remove?: "true" | "false";
      /** Instead, only what the source lacks or no longer needs. */
      readonly diff?: "true" | "false";
    };
    answer: string;
  };
  /** Read how far a pipeline has followed its source */
  getFollowStatus: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: {
      readonly pipeline: string;
      readonly connection: string;
      /** PAUSED: no change starts a run. FAILED: a change starts one a minute later if the trouble may pass, or if the source did not record its changes and does so again; another configuration starts one, too. Otherwise a person has to. */
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** False: no change starts a run. */
      readonly enabled: boolean;
      /** False: the next run compares everything. */
      readonly following: boolean;
      /** The snapshot of the source that is in the mart. */
      readonly position: string | null;
      /** Recorded and not in the mart yet; null where the source could not be asked, or there is no position. */
      readonly changes_waiting: number | null;
      /** The age of the oldest of them; 0 when none waits. */
      readonly lag_seconds: number | null;
      /** When the mart was last brought up to date. */
      readonly last_round_at: string | null;
      /** When all of it was last compared. */
      readonly last_compare_at: string | null;
      /** Why. */
      readonly compare_reason: string | null;
      /** True while a comparison of everything has begun and not ended. */
      readonly comparing: boolean;
      readonly last_sweep_at: string | null;
      readonly next_sweep_at: string | null;
      /** In how many sweeps everything is compared. */
      readonly sweep_parts: number;
      /** How many of them have passed; 0: everything was compared, or nothing yet. */
      readonly swept_parts: number;
      /** Rows that sweeps had to repair, over all. */
      readonly repaired: number;
      /** Those of the last sweep. */
      readonly last_repaired: number;
      /** Whose changes are followed. */
      readonly tables: readonly string[];
      /** Where changes come from a replication slot; null otherwise, or while the source does not answer. */
      readonly slot: {
        readonly name: string;
        /** The WAL that the source's server keeps for it. */
        readonly kept_bytes: number;
      } | null;
      /** Why something is not known, or why no run begins yet. */
      readonly note: string | null;
    };
  };
  /** Read what each mart is made from */
  getGraph: {
    answer: {
      readonly nodes: readonly {
        /** A mart: its target. A table: the connection, a colon and the table. */
        readonly id: string;
        readonly kind: "table" | "mart";
        readonly name: string;
        /** Of a table, the source it is in; null for a mart. */
        readonly connection: string | null;
        /** The pipelines that fill the mart. */
        readonly pipelines: readonly string[];
        /** The nodes that the mart is made from. */
        readonly reads: readonly string[];
        /** The marts that are made from it. */
        readonly read_by: readonly string[];
      }[];
      readonly edges: readonly {
        /** What is read. */
        readonly from: string;
        /** The mart that is made from it. */
        readonly to: string;
        readonly pipeline: string;
        readonly mode: "full" | "incremental" | "follow";
      }[];
      /** What could not be found out. */
      readonly notes: readonly string[];
    };
  };
  /** The process lives */
  getHealth: {
    answer: {
      readonly status: "ok";
    };
  };
  /** Read the last reconcile of a pipeline */
  getLastReconcile: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Reconcile;
  };
  /** The process lives */
  getLiveness: {
    answer: {
      readonly status: "ok";
    };
  };
  /** Metrics for Prometheus */
  getMetrics: {
    answer: string;
  };
  /** Read a pipeline */
  getPipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Pipeline;
  };
  /** Read the checkpoint */
  getPipelineState: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: {
      readonly pipeline_id: string;
      /** Of incremental_key; in mode full always null. */
      readonly last_processed_value: string | null;
      /** Of incremental_id_key; in mode full the key of the last row that was processed. */
      readonly last_processed_id: string | null;
      /** Key of the last row of a load that has not ended. */
      readonly scan_position: readonly string[] | null;
      readonly batches_committed: number;
      /** Null before the first batch. */
      readonly updated_at: string | null;
    };
  };
  /** Read the status and the last run */
  getPipelineStatus: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** Wait at most so long, up to 60s, until it has come to rest. */
      readonly wait?: string;
      /** The request to follow. */
      readonly run_request?: number;
    };
    answer: {
      readonly id: string;
      readonly name: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      readonly enabled: boolean;
      /** The number of the request that is told of: the last one, or the one asked for. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** True when nothing of that request is waiting or under way any more. */
      readonly over: boolean;
      /** The last run that loads or restores, or the last attempt of the request; null before it. */
      readonly last_run: Run | null;
    };
  };
  /** Read the task plan of a pipeline */
  getPipelineTasks: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: {
      readonly items: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
    };
  };
  /** The database answers and has the right schema */
  getReadiness: {
    answer: {
      readonly status: "ok";
    };
  };
  /** Read a reconcile and its report */
  getReconcile: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The id of the reconcile. */
      readonly reconcile_id: string;
    };
    answer: Reconcile;
  };
  /** Read a run */
  getRun: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The id of the run. */
      readonly run_id: string;
    };
    query?: {
      /** Wait at most so long, up to 60s, until the run has ended. */
      readonly wait?: string;
    };
    answer: Run;
  };
  /** Read the log of a run, oldest line first */
  getRunLog: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The id of the run. */
      readonly run_id: string;
    };
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before, or the id of a line. */
      readonly after?: string;
      /** Only lines of this level or more severe. */
      readonly level?: "debug" | "info" | "warn" | "error";
      /** Wait at most so long, up to 60s, until there is a line or the log is over. */
      readonly wait?: string;
    };
    answer: {
      readonly items: readonly {
        /** Grows from line to line. */
        readonly id: number;
        readonly at: string;
        readonly level: "debug" | "info" | "warn" | "error";
        readonly message: string;
        /** What the message is about: rows, timings, codes. */
        readonly fields: Readonly<Record<string, unknown>>;
      }[];
      /** Null on the last page. */
      readonly next: string | null;
      readonly run_status: "REQUESTED" | "RUNNING" | "SUCCESS" | "FAILED" | "PAUSED" | "HANDED_BACK" | "CANCELLED";
      /** True when the run has ended and no more lines will come. */
      readonly over: boolean;
    };
  };
  /** Read a version */
  getVersion: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The number of the version. */
      readonly version: number;
    };
    answer: {
      readonly version: number;
      readonly author: string;
      readonly created_at: string;
      readonly config: Readonly<Record<string, unknown>>;
    };
  };
  /** Keep the checkpoint although the query or the target has changed */
  keepPipelineState: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** Without it the answer is 409, and says what would happen. */
      readonly confirm?: "true" | "false";
    };
    answer: {
      readonly pipeline_id: string;
      /** Of incremental_key; in mode full always null. */
      readonly last_processed_value: string | null;
      /** Of incremental_id_key; in mode full the key of the last row that was processed. */
      readonly last_processed_id: string | null;
      /** Key of the last row of a load that has not ended. */
      readonly scan_position: readonly string[] | null;
      readonly batches_committed: number;
      /** Null before the first batch. */
      readonly updated_at: string | null;
    };
  };
  /** List the runs of all pipelines, newest first */
  listAllRuns: {
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
      /** Only runs of this kind. */
      readonly kind?: "load" | "restore" | "reconcile";
      /** Only runs of this status. */
      readonly status?: "REQUESTED" | "RUNNING" | "SUCCESS" | "FAILED" | "PAUSED" | "HANDED_BACK" | "CANCELLED";
      /** Only runs that were asked for like this. */
      readonly trigger?: "api" | "schedule" | "recovery" | "follow_up" | "change" | "sweep";
      /** Only runs that started later than this. */
      readonly started_after?: string;
      /** Only runs that started earlier than this. */
      readonly started_before?: string;
    };
    answer: {
      readonly items: readonly Run[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List who changed what, and who was refused, newest first */
  listAudit: {
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
      /** Only what this actor did, such as key:ci. */
      readonly actor?: string;
      /** Only this operationId. */
      readonly action?: string;
      /** Only what concerns this id or name. */
      readonly object?: string;
    };
    answer: {
      readonly items: readonly {
        readonly id: string;
        readonly at: string;
        /** key:<name>, jwt:<subject>, local (no login), cli, or unknown. */
        readonly actor: string;
        readonly role: "viewer" | "operator" | "editor" | "admin" | null;
        readonly key_id: string | null;
        readonly ip: string | null;
        /** The operationId. */
        readonly action: string;
        /** The id of what was changed, or what the path named. */
        readonly object: string | null;
        /** Its name at that time. */
        readonly object_name: string | null;
        readonly outcome: "done" | "refused" | "denied";
        readonly http_status: number | null;
        readonly request_id: string | null;
        readonly details: Readonly<Record<string, unknown>>;
      }[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List keys, newest first */
  listKeys: {
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
    };
    answer: {
      readonly items: readonly {
        readonly id: string;
        readonly name: string;
        readonly role: "viewer" | "operator" | "editor" | "admin";
        readonly created_at: string;
        readonly created_by: string;
        readonly expires_at: string | null;
        /** To the minute. */
        readonly last_used_at: string | null;
        readonly revoked_at: string | null;
      }[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List pipelines by name */
  listPipelines: {
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
      /** Only pipelines of this status. */
      readonly status?: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Only enabled pipelines, or only disabled ones. */
      readonly enabled?: "true" | "false";
      /** Only pipelines of this mode. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Only pipelines whose name begins like this. */
      readonly name?: string;
      /** Only pipelines with this target. */
      readonly target_table?: string;
    };
    answer: {
      readonly items: readonly Pipeline[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List the reconciles of a pipeline, newest first */
  listReconciles: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
    };
    answer: {
      readonly items: readonly Reconcile[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List the rows that the target refused, newest first */
  listRejects: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
      /** Only those of this run. */
      readonly run_id?: string;
    };
    answer: {
      readonly items: readonly {
        readonly id: number;
        /** The run that met the row. */
        readonly run_id: string;
        readonly state: "OPEN" | "RETRY_REQUESTED";
        readonly key: Readonly<Record<string, string | null>> | null;
        /** The row as it was sent to the target, in exact texts. A retry reads it from the source again. */
        readonly row: Readonly<Record<string, string | null>>;
        readonly error_code: string;
        readonly error: string;
        readonly created_at: string;
      }[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List the runners, the living first */
  listRunners: {
    answer: {
      readonly items: readonly {
        readonly id: string;
        readonly hostname: string;
        readonly pid: number;
        readonly version: string;
        /** It has not stopped, and was heard from recently. */
        readonly alive: boolean;
        readonly started_at: string;
        readonly last_seen_at: string;
        /** Null if it did not report its end. */
        readonly stopped_at: string | null;
        /** The runs that it holds, each with its pipeline and that pipeline's status. */
        readonly holds: readonly {
          readonly pipeline_id: string;
          readonly pipeline_name: string;
          readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
          readonly run_id: string;
          readonly kind: "load" | "restore" | "reconcile";
          /** When others may take the run over, unless it is extended. */
          readonly lease_expires_at: string;
        }[];
      }[];
    };
  };
  /** List the runs of a pipeline, newest first */
  listRuns: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
      /** Only runs of this kind. */
      readonly kind?: "load" | "restore" | "reconcile";
      /** Only runs of this status. */
      readonly status?: "REQUESTED" | "RUNNING" | "SUCCESS" | "FAILED" | "PAUSED" | "HANDED_BACK" | "CANCELLED";
      /** Only runs that were asked for like this. */
      readonly trigger?: "api" | "schedule" | "recovery" | "follow_up" | "change" | "sweep";
      /** Only runs that started later than this. */
      readonly started_after?: string;
      /** Only runs that started earlier than this. */
      readonly started_before?: string;
      /** Only runs of this request. */
      readonly run_request?: number;
    };
    answer: {
      readonly items: readonly Run[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** List the code tasks that runners have registered */
  listTasks: {
    answer: {
      readonly items: readonly {
        /** What a pipeline writes as the body of its task. */
        readonly name: string;
        readonly language: "TYPESCRIPT" | "PYTHON";
        readonly description: string;
        /** JSON Schema of the parameters. */
        readonly params: Readonly<Record<string, unknown>>;
        /** The live runners that have it. */
        readonly runners: readonly string[];
      }[];
    };
  };
  /** List the versions of a pipeline, newest first */
  listVersions: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** At most this many. */
      readonly limit?: number;
      /** The `next` of the page before. */
      readonly after?: string;
    };
    answer: {
      readonly items: readonly {
        readonly version: number;
        readonly author: string;
        readonly created_at: string;
        /** What differs from the version before; empty for the first. */
        readonly changed_fields: readonly string[];
      }[];
      /** Null on the last page. */
      readonly next: string | null;
    };
  };
  /** Request a pause */
  pausePipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Pipeline;
  };
  /** Show the first rows that a pipeline would read */
  previewPipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** At most this many rows. */
      readonly limit?: number;
    };
    body?: {
      /** Unique name; usable instead of the id in every path. */
      readonly name?: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table?: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
    } | null;
    answer: {
      readonly columns: readonly {
        readonly name: string;
        /** As SQL writes it: numeric(3,1). */
        readonly type: string;
      }[];
      /** Every value as the exact text of PostgreSQL, or null. */
      readonly rows: readonly (readonly (string | null)[])[];
      /** The values that are longer than shown here, counted from 0. */
      readonly cut: readonly {
        readonly row: number;
        readonly column: number;
      }[];
      /** False when there are more rows than shown. */
      readonly complete: boolean;
    };
  };
  /** Show the first rows of a query */
  previewQuery: {
    body: {
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** At most this many rows. */
      readonly limit?: number;
    };
    answer: {
      readonly columns: readonly {
        readonly name: string;
        /** As SQL writes it: numeric(3,1). */
        readonly type: string;
      }[];
      /** Every value as the exact text of PostgreSQL, or null. */
      readonly rows: readonly (readonly (string | null)[])[];
      /** The values that are longer than shown here, counted from 0. */
      readonly cut: readonly {
        readonly row: number;
        readonly column: number;
      }[];
      /** False when there are more rows than shown. */
      readonly complete: boolean;
    };
  };
  /** Have the run take up the changed configuration */
  reloadPipelineConfig: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: {
      readonly pipeline: Pipeline;
      /** The run under way; null where none is, then the next run uses everything. */
      readonly run_id: string | null;
      /** The newest version that the run under way has taken up. */
      readonly applied_version: number | null;
      /** Changed since; the run takes them up with its next batch. */
      readonly pending_fields: readonly string[];
    };
  };
  /** Replace the whole task plan */
  replacePipelineTasks: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body: {
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
    };
    answer: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep: string | null;
      readonly incremental_key: string | null;
      readonly incremental_id_key: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds: number;
      readonly enabled: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
      readonly id: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Counts the requests to run; the runs of a request carry its number. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** When the schedule fires next; null without one, or while it is planned. */
      readonly next_run_at: string | null;
      readonly config_version: number;
      readonly created_at: string;
      readonly updated_at: string;
      /** What could not be checked, and what a run survives; left out when there is nothing. */
      readonly warnings?: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
    };
  };
  /** Compare source and target */
  requestReconcile: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Reconcile;
  };
  /** Forget where the pipeline is */
  resetPipelineState: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** Without it the answer is 409, and says what would happen. */
      readonly confirm?: "true" | "false";
    };
    answer: {
      readonly pipeline_id: string;
      /** Of incremental_key; in mode full always null. */
      readonly last_processed_value: string | null;
      /** Of incremental_id_key; in mode full the key of the last row that was processed. */
      readonly last_processed_id: string | null;
      /** Key of the last row of a load that has not ended. */
      readonly scan_position: readonly string[] | null;
      readonly batches_committed: number;
      /** Null before the first batch. */
      readonly updated_at: string | null;
    };
  };
  /** Request the previous index */
  restorePreviousTarget: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Pipeline;
  };
  /** Make a version the present configuration */
  restoreVersion: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
      /** The number of the version. */
      readonly version: number;
    };
    answer: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep: string | null;
      readonly incremental_key: string | null;
      readonly incremental_id_key: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds: number;
      readonly enabled: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
      readonly id: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Counts the requests to run; the runs of a request carry its number. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** When the schedule fires next; null without one, or while it is planned. */
      readonly next_run_at: string | null;
      readonly config_version: number;
      readonly created_at: string;
      readonly updated_at: string;
      /** What could not be checked, and what a run survives; left out when there is nothing. */
      readonly warnings?: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
    };
  };
  /** Try rejected rows again */
  retryRejects: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body?: {
      /** The ids of rejects. */
      readonly ids?: readonly number[];
    } | null;
    answer: {
      readonly retried: number;
      readonly pipeline_status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
    };
  };
  /** Revoke a key */
  revokeKey: {
    params: {
      /** The id of the key. */
      readonly id: string;
    };
    answer: undefined;
  };
  /** Request a run */
  runPipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    answer: Pipeline;
  };
  /** Set where the next incremental run begins */
  setPipelineState: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    query?: {
      /** Without it the answer is 409, and says what would happen. */
      readonly confirm?: "true" | "false";
    };
    body: {
      /** A value of incremental_key, as PostgreSQL prints it. */
      readonly last_processed_value: string;
      /** A value of incremental_id_key: that row itself counts as read. Null: all rows of the value are read. */
      readonly last_processed_id?: string | null;
    };
    answer: {
      readonly pipeline_id: string;
      /** Of incremental_key; in mode full always null. */
      readonly last_processed_value: string | null;
      /** Of incremental_id_key; in mode full the key of the last row that was processed. */
      readonly last_processed_id: string | null;
      /** Key of the last row of a load that has not ended. */
      readonly scan_position: readonly string[] | null;
      readonly batches_committed: number;
      /** Null before the first batch. */
      readonly updated_at: string | null;
    };
  };
  /** Change a pipeline */
  updatePipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body: {
      /** Unique name; usable instead of the id in every path. */
      readonly name?: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table?: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
    };
    answer: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep: string | null;
      readonly incremental_key: string | null;
      readonly incremental_id_key: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds: number;
      readonly enabled: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
      readonly id: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Counts the requests to run; the runs of a request carry its number. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** When the schedule fires next; null without one, or while it is planned. */
      readonly next_run_at: string | null;
      readonly config_version: number;
      readonly created_at: string;
      readonly updated_at: string;
      /** What could not be checked, and what a run survives; left out when there is nothing. */
      readonly warnings?: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
    };
  };
  /** Change a pipeline, by POST */
  updatePipelineConfig: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body: {
      /** Unique name; usable instead of the id in every path. */
      readonly name?: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table?: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
    };
    answer: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep: string | null;
      readonly incremental_key: string | null;
      readonly incremental_id_key: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds: number;
      readonly enabled: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table: string | null;
      }[];
      readonly id: string;
      readonly status: "IDLE" | "RUN_REQUESTED" | "RUNNING" | "PAUSE_REQUESTED" | "CANCEL_REQUESTED" | "PAUSED" | "FAILED";
      /** Counts the requests to run; the runs of a request carry its number. */
      readonly run_request: number;
      /** Set while it waits for a temporary problem to go away. */
      readonly waiting: {
        /** The code of the last attempt's error. */
        readonly code: string;
        readonly reason: string;
        /** When the problem began; a committed batch ends it. */
        readonly since: string;
        /** When the next attempt starts; requesting a run starts it at once. */
        readonly until: string;
      } | null;
      /** When the schedule fires next; null without one, or while it is planned. */
      readonly next_run_at: string | null;
      readonly config_version: number;
      readonly created_at: string;
      readonly updated_at: string;
      /** What could not be checked, and what a run survives; left out when there is nothing. */
      readonly warnings?: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
    };
  };
  /** Validate a configuration before it is stored */
  validateConfiguration: {
    body: {
      /** Unique name; usable instead of the id in every path. */
      readonly name: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
      readonly id?: string;
    };
    answer: {
      /** No problem is an error. */
      readonly valid: boolean;
      readonly problems: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
      /** Of the query; null when it cannot be described. */
      readonly columns: readonly {
        readonly name: string;
        /** As SQL writes it: numeric(3,1). */
        readonly type: string;
      }[] | null;
      readonly target: {
        readonly table: string;
        readonly exists: boolean | null;
        /** target_key, or the primary key of the table. */
        readonly key: readonly string[] | null;
        readonly will_create: boolean | null;
        /** What the query has and the table has not. */
        readonly missing_columns: readonly {
          readonly name: string;
          /** As SQL writes it: numeric(3,1). */
          readonly type: string;
        }[] | null;
        /** What the table has and the query has not. */
        readonly extra_columns: readonly string[] | null;
        /** Why something is not known. */
        readonly note: string | null;
      } | null;
      /** Null when the problems leave it open. */
      readonly reading: {
        /** keyset: each batch by a statement of its own. single_scan: one statement for the whole run. */
        readonly strategy: "keyset" | "single_scan" | null;
        readonly explanation: string;
        /** As the run is going to record it: push-down, stream or rows. */
        readonly data_path: string | null;
        readonly order_by: readonly string[];
        /** An index that would help, as SQL or in words. */
        readonly index_advice: string | null;
      } | null;
      readonly writing: {
        /** As the run is going to record it. */
        readonly strategy: string;
      } | null;
      /** Incremental mode: tables that the query reads, but whose changes do not move incremental_key, so that no run notices them. Null in full mode, or when it could not be told. */
      readonly unseen_tables: readonly string[] | null;
      /** What no check can find out, and what to do where it matters. */
      readonly notes: readonly string[];
      /** How many rows the next run reads, as the planner guesses; incremental: from where it is now. */
      readonly estimated_rows: number | null;
    };
  };
  /** Validate a pipeline, or a change of it */
  validatePipeline: {
    params: {
      /** The id or the name of the pipeline. */
      readonly id: string;
    };
    body?: {
      /** Unique name; usable instead of the id in every path. */
      readonly name?: string;
      /** What the pipeline is for. */
      readonly description?: string;
      /** PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it. */
      readonly type?: "SQL" | "PYTHON" | "TYPESCRIPT";
      readonly source_type?: "postgres";
      /** Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL). */
      readonly source_connection?: string;
      /** One SELECT. Ignored when the pipeline has tasks. */
      readonly source_query?: string;
      /** analytics.<table> or es:<index>. */
      readonly target_table?: string;
      /** Key columns of the target; empty: the target's primary key. */
      readonly target_key?: readonly string[];
      /** Options that only some kinds of target have. */
      readonly target_options?: {
        /** Index: the definition of a field, instead of the one that follows from the column's type. */
        readonly mapping?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
        /** Index: its settings, such as analysis or number_of_shards. */
        readonly settings?: Readonly<Record<string, unknown>>;
        /** Index, full mode: how long the index before the last load is kept at least; 24 by default. */
        readonly keep_previous_hours?: number;
        /** Index: a boolean column; a row in which it is true is deleted instead of written. */
        readonly delete_when?: string;
        /** Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then. */
        readonly adopt?: boolean;
        /** Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when. */
        readonly write?: "replace" | "merge";
      };
      /** Create the target from the query's column types when it is missing. */
      readonly create_target?: boolean;
      /** Add columns of the query that the target lacks, instead of refusing to run. */
      readonly add_columns?: boolean;
      /** Full and follow mode: let a source without rows empty the target. */
      readonly allow_empty?: boolean;
      /** Full and follow mode: refuse to delete a larger share of the target at once. */
      readonly max_delete_percent?: number;
      /** Fail when the target refuses more rows than this in a run. */
      readonly max_rejects?: number;
      /** full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself. */
      readonly mode?: "full" | "incremental" | "follow";
      /** Follow mode: how the changes of the source are followed. */
      readonly follow?: {
        /** How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes. */
        readonly check_every_seconds?: number;
        /** Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are. */
        readonly full_compare_above_percent?: number;
        /** Compare the whole mart when more rows than this have changed. */
        readonly max_changes?: number;
        /** In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in. */
        readonly sweep_parts?: number;
        /** Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another. */
        readonly tables?: Readonly<Record<string, {
            /** The columns of this table that are the mart's key, in its order. */
            readonly key_columns: readonly string[];
          } | {
            /** everything: any change compares the whole mart; ignore: changes are left to the sweep. */
            readonly on_change: "everything" | "ignore";
          } | {
            /** A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before. */
            readonly keys: string;
          }>>;
      };
      /** When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null. */
      readonly sweep?: string | null;
      readonly incremental_key?: string | null;
      readonly incremental_id_key?: string | null;
      /** Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run. */
      readonly null_cursor?: "reject" | "exclude" | "each_run";
      /** Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set. */
      readonly lookback_seconds?: number;
      /** Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance. */
      readonly lookback_numbers?: number;
      /** Rows per batch. Follow mode: five times as many keys, up to 5,000. */
      readonly batch_size?: number;
      /** How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts. */
      readonly retry_for_seconds?: number;
      readonly enabled?: boolean;
      /** An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null. */
      readonly schedule_interval?: string | null;
      /** The task plan; empty: source_query alone. */
      readonly tasks?: readonly {
        /** Position in the plan, from 1. */
        readonly order_index: number;
        /** SQL for the first task, then TYPESCRIPT or PYTHON. */
        readonly task_type: string;
        /** The query, or the name of a registered task and its parameters as JSON. */
        readonly body: string;
        /** Must be null: the query names what is read. */
        readonly source_table?: string | null;
        /** Only the last task may override the pipeline's target. */
        readonly target_table?: string | null;
      }[];
    } | null;
    answer: {
      /** No problem is an error. */
      readonly valid: boolean;
      readonly problems: readonly {
        /** Stable; programs decide by it. */
        readonly code: string;
        /** With an error a run fails; a warning it survives. */
        readonly severity: "error" | "warning";
        /** JSON pointer to the field; empty: the pipeline as a whole. */
        readonly pointer: string;
        readonly message: string;
        /** What to do next. */
        readonly hint: string;
        /** Where in the query, from 1. */
        readonly line?: number;
        readonly column?: number;
      }[];
      /** Of the query; null when it cannot be described. */
      readonly columns: readonly {
        readonly name: string;
        /** As SQL writes it: numeric(3,1). */
        readonly type: string;
      }[] | null;
      readonly target: {
        readonly table: string;
        readonly exists: boolean | null;
        /** target_key, or the primary key of the table. */
        readonly key: readonly string[] | null;
        readonly will_create: boolean | null;
        /** What the query has and the table has not. */
        readonly missing_columns: readonly {
          readonly name: string;
          /** As SQL writes it: numeric(3,1). */
          readonly type: string;
        }[] | null;
        /** What the table has and the query has not. */
        readonly extra_columns: readonly string[] | null;
        /** Why something is not known. */
        readonly note: string | null;
      } | null;
      /** Null when the problems leave it open. */
      readonly reading: {
        /** keyset: each batch by a statement of its own. single_scan: one statement for the whole run. */
        readonly strategy: "keyset" | "single_scan" | null;
        readonly explanation: string;
        /** As the run is going to record it: push-down, stream or rows. */
        readonly data_path: string | null;
        readonly order_by: readonly string[];
        /** An index that would help, as SQL or in words. */
        readonly index_advice: string | null;
      } | null;
      readonly writing: {
        /** As the run is going to record it. */
        readonly strategy: string;
      } | null;
      /** Incremental mode: tables that the query reads, but whose changes do not move incremental_key, so that no run notices them. Null in full mode, or when it could not be told. */
      readonly unseen_tables: readonly string[] | null;
      /** What no check can find out, and what to do where it matters. */
      readonly notes: readonly string[];
      /** How many rows the next run reads, as the planner guesses; incremental: from where it is now. */
      readonly estimated_rows: number | null;
    };
  };
  /** Watch pipelines and runs as they change */
  watchEvents: {
    query?: {
      /** Only this pipeline, by its id or name. */
      readonly pipeline?: string;
    };
    answer: string;
  };
}

export const ROUTES = {
  applyPipelines: { method: "POST", path: "/api/v1/apply" },
  cancelPipeline: { method: "POST", path: "/api/v1/pipelines/{id}/cancel" },
  createKey: { method: "POST", path: "/api/v1/keys" },
  createPipeline: { method: "POST", path: "/api/v1/pipelines" },
  deletePipeline: { method: "DELETE", path: "/api/v1/pipelines/{id}" },
  diffVersions: { method: "GET", path: "/api/v1/pipelines/{id}/versions/{version}/diff" },
  discardRejects: { method: "POST", path: "/api/v1/pipelines/{id}/rejects/discard" },
  getFollowPlan: { method: "GET", path: "/api/v1/pipelines/{id}/follow/plan" },
  getFollowScript: { method: "GET", path: "/api/v1/sources/{connection}/follow/script" },
  getFollowStatus: { method: "GET", path: "/api/v1/pipelines/{id}/follow" },
  getGraph: { method: "GET", path: "/api/v1/graph" },
  getHealth: { method: "GET", path: "/api/v1/health" },
  getLastReconcile: { method: "GET", path: "/api/v1/pipelines/{id}/reconcile" },
  getLiveness: { method: "GET", path: "/api/v1/health/live" },
  getMetrics: { method: "GET", path: "/api/v1/metrics" },
  getPipeline: { method: "GET", path: "/api/v1/pipelines/{id}" },
  getPipelineState: { method: "GET", path: "/api/v1/pipelines/{id}/state" },
  getPipelineStatus: { method: "GET", path: "/api/v1/pipelines/{id}/status" },
  getPipelineTasks: { method: "GET", path: "/api/v1/pipelines/{id}/tasks" },
  getReadiness: { method: "GET", path: "/api/v1/health/ready" },
  getReconcile: { method: "GET", path: "/api/v1/pipelines/{id}/reconciles/{reconcile_id}" },
  getRun: { method: "GET", path: "/api/v1/pipelines/{id}/runs/{run_id}" },
  getRunLog: { method: "GET", path: "/api/v1/pipelines/{id}/runs/{run_id}/logs" },
  getVersion: { method: "GET", path: "/api/v1/pipelines/{id}/versions/{version}" },
  keepPipelineState: { method: "POST", path: "/api/v1/pipelines/{id}/state/keep" },
  listAllRuns: { method: "GET", path: "/api/v1/runs" },
  listAudit: { method: "GET", path: "/api/v1/audit" },
  listKeys: { method: "GET", path: "/api/v1/keys" },
  listPipelines: { method: "GET", path: "/api/v1/pipelines" },
  listReconciles: { method: "GET", path: "/api/v1/pipelines/{id}/reconciles" },
  listRejects: { method: "GET", path: "/api/v1/pipelines/{id}/rejects" },
  listRunners: { method: "GET", path: "/api/v1/runners" },
  listRuns: { method: "GET", path: "/api/v1/pipelines/{id}/runs" },
  listTasks: { method: "GET", path: "/api/v1/tasks" },
  listVersions: { method: "GET", path: "/api/v1/pipelines/{id}/versions" },
  pausePipeline: { method: "POST", path: "/api/v1/pipelines/{id}/pause" },
  previewPipeline: { method: "POST", path: "/api/v1/pipelines/{id}/preview" },
  previewQuery: { method: "POST", path: "/api/v1/preview" },
  reloadPipelineConfig: { method: "POST", path: "/api/v1/pipelines/{id}/reload-config" },
  replacePipelineTasks: { method: "PUT", path: "/api/v1/pipelines/{id}/tasks" },
  requestReconcile: { method: "POST", path: "/api/v1/pipelines/{id}/reconcile" },
  resetPipelineState: { method: "POST", path: "/api/v1/pipelines/{id}/state/reset" },
  restorePreviousTarget: { method: "POST", path: "/api/v1/pipelines/{id}/restore-previous" },
  restoreVersion: { method: "POST", path: "/api/v1/pipelines/{id}/versions/{version}/restore" },
  retryRejects: { method: "POST", path: "/api/v1/pipelines/{id}/rejects/retry" },
  revokeKey: { method: "DELETE", path: "/api/v1/keys/{id}" },
  runPipeline: { method: "POST", path: "/api/v1/pipelines/{id}/run" },
  setPipelineState: { method: "POST", path: "/api/v1/pipelines/{id}/state/set" },
  updatePipeline: { method: "PATCH", path: "/api/v1/pipelines/{id}" },
  updatePipelineConfig: { method: "POST", path: "/api/v1/pipelines/{id}/update-config" },
  validateConfiguration: { method: "POST", path: "/api/v1/validate" },
  validatePipeline: { method: "POST", path: "/api/v1/pipelines/{id}/validate" },
  watchEvents: { method: "GET", path: "/api/v1/events" },
} as const satisfies Readonly<Record<keyof Operations, { readonly method: string; readonly path: string }>>;
