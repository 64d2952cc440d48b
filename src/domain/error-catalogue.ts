// biome-ignore-all lint/style/noExcessiveLinesPerFile: a catalogue, looked up by code and never read through.
/**
 * Every error a person can meet, except those of a single connector (its own `errors.ts`): a stable code, the HTTP
 * status, what the runner does about it, a short title, and a hint that says what to do next.
 */

/**
 * What the runner does when a batch fails with this error. `src/domain/retry-policy.ts` says what follows from it.
 * - `never`: it does not go away by itself; the run fails at once.
 * - `retry`: it may or may not go away; tried again a few times.
 * - `wait`: it goes away by itself; waited out with growing pauses, for `retry_for_seconds`.
 * - `reconnect`: a database or a cluster cannot be reached, or takes no more connections. Waited out like `wait` while the
 *   meta-store answers; otherwise nothing can be recorded, and recovery takes over.
 * - `row`: single rows are at fault; they can be set aside and the rest written.
 * - `fenced`: another runner holds the pipeline now; stop without a trace.
 */
export type RetryClass = "never" | "retry" | "wait" | "reconnect" | "row" | "fenced";

export interface CatalogueEntry {
  readonly status: number;
  readonly retry: RetryClass;
  readonly title: string;
  readonly hint: string;
}

export const entry = (status: number, retry: RetryClass, title: string, hint: string): CatalogueEntry => ({
  status,
  retry,
  title,
  hint,
});

export const ERROR_CATALOGUE = {
  // Requests
  MALFORMED_REQUEST: entry(400, "never", "The request cannot be read", "Send a JSON body that parses."),
  INVALID_REQUEST: entry(422, "never", "The request is not valid", "Correct the fields listed under errors."),
  NOT_FOUND: entry(404, "never", "No such thing", "List what exists with GET /api/v1/pipelines."),
  BODY_TOO_LARGE: entry(413, "never", "The request is too large", "Send a smaller body."),
  UNSUPPORTED_MEDIA_TYPE: entry(
    415,
    "never",
    "The body is not JSON",
    "Send the body as JSON with the header content-type: application/json.",
  ),
  METHOD_NOT_ALLOWED: entry(405, "never", "That method does not exist here", "See /docs for the methods of each path."),
  PRECONDITION_FAILED: entry(
    412,
    "never",
    "Somebody else changed the pipeline in the meantime",
    "Read the pipeline again, look at what changed, and send the request with its new ETag.",
  ),
  CONFIRMATION_NEEDED: entry(
    409,
    "never",
    "This needs confirmation",
    "If that is what you want, send the same request with ?confirm=true.",
  ),
  IDEMPOTENCY_KEY_REUSED: entry(
    422,
    "never",
    "The Idempotency-Key belongs to another request",
    "Use a new key for a new request, or repeat the first one exactly.",
  ),
  IDEMPOTENCY_KEY_IN_USE: entry(
    409,
    "never",
    "The same request is still under way",
    "Send it again after the seconds in Retry-After.",
  ),
  TOO_MANY_STREAMS: entry(429, "never", "Too many event streams are open", "Close a stream, or try again later."),
  HEADERS_TOO_LARGE: entry(431, "never", "The headers are too large", "Send a shorter URL and fewer headers."),
  REQUEST_TIMEOUT: entry(408, "never", "The request did not arrive in time", "Send the whole request at once."),

  // Access
  UNAUTHENTICATED: entry(
    401,
    "never",
    "No valid login",
    "Send the header authorization: Bearer <key>; an administrator makes keys with POST /api/v1/keys or vitrina key create.",
  ),
  ROLE_TOO_LOW: entry(403, "never", "Your role does not allow this", "Ask an administrator for a key with that role."),
  LOGIN_UNAVAILABLE: entry(
    503,
    "never",
    "Logins cannot be checked",
    "Try again in a moment; if it recurs, check JWT_JWKS_URL.",
  ),
  HOST_NOT_ALLOWED: entry(
    421,
    "never",
    "The API does not answer to that name",
    "Address it as localhost or 127.0.0.1, or add the name to API_ALLOWED_HOSTS.",
  ),
  ORIGIN_NOT_ALLOWED: entry(
    403,
    "never",
    "That web page may not change anything here",
    "Add its origin to API_CORS_ORIGINS if you trust it.",
  ),
  RATE_LIMITED: entry(
    429,
    "never",
    "Too many requests",
    "Wait as long as the header Retry-After says; API_RATE_LIMIT_PER_MINUTE sets the limit.",
  ),
  TOO_MANY_FAILED_LOGINS: entry(
    429,
    "never",
    "Too many failed logins",
    "Wait as long as the header Retry-After says, then use a valid key.",
  ),
  KEY_NOT_FOUND: entry(404, "never", "No such key", "GET /api/v1/keys lists the keys with their ids."),

  // Pipelines
  PIPELINE_NOT_FOUND: entry(
    404,
    "never",
    "No such pipeline",
    "Use the id or the exact name; GET /api/v1/pipelines lists them.",
  ),
  RUN_NOT_FOUND: entry(404, "never", "No such run", "GET /api/v1/pipelines/{id}/runs lists the runs of a pipeline."),
  VERSION_NOT_FOUND: entry(
    404,
    "never",
    "No such version",
    "GET /api/v1/pipelines/{id}/versions lists the versions of a pipeline.",
  ),
  VERSION_NOT_RESTORABLE: entry(
    409,
    "never",
    "This version cannot be restored",
    "It breaks rules that were added later. Look at the version, and change the pipeline by hand.",
  ),
  RECONCILE_NOT_FOUND: entry(
    404,
    "never",
    "No such reconcile",
    "GET /api/v1/pipelines/{id}/reconciles lists the reconciles of a pipeline.",
  ),
  PIPELINE_NAME_TAKEN: entry(
    409,
    "never",
    "That name is taken",
    "Choose another name, or PATCH the pipeline that has it.",
  ),
  PIPELINE_ID_TAKEN: entry(409, "never", "That id is taken", "Leave the id out, or PATCH the pipeline that has it."),
  STATUS_CONFLICT: entry(
    409,
    "never",
    "The pipeline's status does not allow this",
    "Wait until the status changes, or see GET /api/v1/pipelines/{id}/status.",
  ),
  PIPELINE_DISABLED: entry(409, "never", "The pipeline is disabled", "Set enabled to true first."),
  FIELD_LOCKED_WHILE_RUNNING: entry(
    409,
    "never",
    "This field cannot change while the pipeline runs",
    "Pause the pipeline, or wait until it is IDLE, PAUSED or FAILED, then change it.",
  ),

  // Configuration
  TARGET_NOT_ALLOWED: entry(
    422,
    "never",
    "The target is not allowed",
    "Use analytics.<table>, or add the schema to TARGET_SCHEMAS, or the index to TARGET_INDEXES; if TARGETS is set, it must also be listed there.",
  ),
  TASK_PLAN_INVALID: entry(422, "never", "The task plan breaks its contract", "Correct the tasks named in the detail."),
  SOURCE_QUERY_MISSING: entry(
    422,
    "never",
    "There is no query",
    "Give the pipeline a source_query, or tasks that start with an SQL task.",
  ),
  SCHEDULE_INVALID: entry(
    422,
    "never",
    "The schedule cannot be read",
    "Use an interval (15m, PT15M) or cron with a time zone (0 3 * * * Europe/Moscow).",
  ),
  SOURCE_CONNECTION_UNKNOWN: entry(
    422,
    "never",
    "No such source connection",
    "Set SOURCE_<NAME>_URL in the environment of the runner.",
  ),
  NOT_SUPPORTED: entry(422, "never", "This is not supported yet", "See the changelog for what each release can do."),

  // Queries
  QUERY_REFUSED: entry(
    422,
    "never",
    "The query does something that is not allowed",
    "Change what the detail names; a query is one SELECT over the allowed source schemas.",
  ),
  SOURCE_NOT_AUDITABLE: entry(
    422,
    "never",
    "The source does not allow queries to be examined",
    "Grant the reader TEMPORARY on the source database.",
  ),

  QUERY_TOO_SLOW: entry(
    422,
    "never",
    "The query did not return its first rows in time",
    "Make the query faster or smaller, or raise PREVIEW_TIMEOUT_SECONDS.",
  ),
  PREVIEW_BUSY: entry(429, "retry", "Too many queries are being tried at once", "Wait until one of them has ended."),

  // Reading and writing
  SOURCE_QUERY_FAILED: entry(
    422,
    "never",
    "The source query cannot run",
    "Run the query by hand as the reader role and correct it.",
  ),
  SOURCE_COLUMN_NAMES: entry(
    422,
    "never",
    "The query's columns cannot be told apart",
    "Give every column of the query a name of its own with AS.",
  ),
  TARGET_MISSING: entry(
    422,
    "never",
    "The target table does not exist",
    "Create it, or set create_target to true on the pipeline.",
  ),
  TARGET_COLUMN_MISSING: entry(
    422,
    "never",
    "The target lacks a column of the query",
    "Set add_columns to true, add the column to the target table yourself, or remove it from the query.",
  ),
  TARGET_COLUMN_REQUIRED: entry(
    422,
    "never",
    "The target requires a column that the query lacks",
    "Select the column in the query, give it a default, or make it nullable.",
  ),
  TARGET_TYPE_MISMATCH: entry(
    422,
    "never",
    "A column of the query does not fit the target's type",
    "Cast the column in the query to the target's type, or change the target.",
  ),
  TARGET_COLUMN_LEFT: entry(
    422,
    "never",
    "A column of the target is no longer filled",
    "If it was renamed or is no longer needed, have the owner of the table drop it.",
  ),
  KEY_MISSING: entry(
    422,
    "never",
    "The pipeline has no key",
    "Set target_key, or give the target table a primary key.",
  ),
  KEY_NOT_IN_QUERY: entry(422, "never", "The query does not return the key", "Select every key column in the query."),
  KEY_NOT_UNIQUE_IN_TARGET: entry(
    422,
    "never",
    "The target has no unique index on the key",
    "Create a unique index on exactly the key columns.",
  ),
  KEY_NOT_UNIQUE_IN_SOURCE: entry(
    422,
    "never",
    "The query returns a key more than once",
    "Choose a key that is unique in the query, or group the query by its key.",
  ),
  KEY_CHANGED_BY_TASK: entry(
    422,
    "never",
    "A code task changed the key of a row",
    "In follow mode a task may drop rows and change their other columns; make the key in the query, or use mode full.",
  ),
  KEY_NULL_IN_SOURCE: entry(
    422,
    "never",
    "Rows without a key are rejected",
    "Filter them out of the query, fill the column in the source, or choose another key.",
  ),
  CURSOR_UNUSABLE: entry(
    422,
    "never",
    "The incremental key cannot be used",
    "Use a column that grows with every change, such as a modified timestamp, and a unique incremental_id_key beside it.",
  ),
  CURSOR_NULL: entry(
    422,
    "never",
    "Rows without an incremental key would be missed",
    "Fill the column in the source, filter such rows out of the query, or set null_cursor to exclude or each_run.",
  ),
  CURSOR_UNINDEXED: entry(
    422,
    "never",
    "The incremental key has no index",
    "Create an index on the incremental key in the source; without one every run reads the whole table.",
  ),
  TARGET_SHARED: entry(
    422,
    "never",
    "Two pipelines fill one target, and one of them deletes what it did not write",
    "Give each a target of its own; or join their queries by UNION ALL in one pipeline; or let both be incremental.",
  ),
  CHANGES_UNSEEN: entry(
    422,
    "never",
    "Changes to some tables are not seen",
    "Use the greatest timestamp of all tables as incremental_key, such as greatest(a.modified, b.modified); or use mode full; or run reconcile from time to time. Rows that are deleted in the source stay in the target.",
  ),
  FOLLOW_REFUSED: entry(
    422,
    "never",
    "Changes of a table cannot be followed",
    "Say under follow.tables how its changes find their keys, or on_change: everything.",
  ),
  CHANGES_NOT_RECORDED: entry(
    422,
    "never",
    "The source does not record the changes of a table",
    "Have the owner of the source run the script that vitrina follow script <connection> prints, at any time and as often as you like; then run the pipeline again.",
  ),
  FOLLOW_UNCERTAIN: entry(
    422,
    "never",
    "A mart that follows may differ from its query",
    "If that matters, change the query as the message says; a sweep compares the whole mart and repairs it.",
  ),
  FOLLOW_SIDE_EFFECT: entry(
    422,
    "never",
    "That marts follow a source concerns others there",
    "Tell the owner of the source what the message says. The mart is right either way.",
  ),
  FOLLOW_UNINDEXED: entry(
    422,
    "never",
    "Changes find their keys without an index",
    "Create the index in the source; without it each change of the table reads another one as a whole.",
  ),
  FOLLOW_CYCLE: entry(
    422,
    "never",
    "A mart is made from itself",
    "Let the mart read the tables behind the others instead, or join both queries in one pipeline. vitrina graph shows who reads what.",
  ),
  CURSOR_NUMBERS_AHEAD: entry(
    422,
    "never",
    "The numbers of the incremental key are allocated in advance",
    "Have the owner of the sequence set CACHE 1, use a timestamp as incremental_key, or set lookback_numbers.",
  ),
  CURSOR_NOT_UNIQUE: entry(
    422,
    "never",
    "The cursor does not tell all rows apart",
    "No row is lost: the target key tells them apart, and rows at the position are read again. With a unique incremental_id_key, such as the table's primary key, each row is read only once.",
  ),
  CHECK_TIMED_OUT: entry(
    422,
    "never",
    "A check took too long",
    "It was skipped; the run repeats it with more time. An index on the columns of the check makes it fast.",
  ),
  STATE_OF_OTHER_CONFIG: entry(
    409,
    "never",
    "The checkpoint belongs to another query or key",
    "Reset the state to read everything again, or keep it if the old position is still right for the new query.",
  ),
  STATE_NOT_SETTABLE: entry(
    409,
    "never",
    "Only an incremental pipeline has a position to set",
    "Use state/reset to read everything again, or set mode to incremental first.",
  ),
  STATE_UNUSABLE: entry(
    422,
    "never",
    "The position does not fit its column",
    "Set the state to a value of that type, or reset it to read everything again.",
  ),
  SOURCE_EMPTY: entry(
    422,
    "never",
    "The source is empty, but the target is not",
    "Check the query; if the target should become empty, set allow_empty to true.",
  ),
  TOO_MANY_DELETIONS: entry(
    422,
    "never",
    "The load would delete too many rows",
    "Check the query; if the rows are really gone, raise max_delete_percent and run again.",
  ),
  TOO_MANY_REJECTS: entry(
    422,
    "never",
    "The target refused too many rows",
    "Look at the rejected rows, correct the source or the target, or raise max_rejects.",
  ),
  REJECT_NOT_FOUND: entry(
    422,
    "never",
    "A rejected row could not be found again",
    "Reset the state so that the next run reads everything, or discard the reject.",
  ),
  ROW_REFUSED: entry(422, "row", "The target refused a row", "Correct the row in the source, or the target's rules."),
  PERMISSION_DENIED: entry(
    403,
    "never",
    "The database refused access",
    "Grant the connection's role what the detail names: sources are read as vitrina_reader and targets written as vitrina_writer, unless their URLs name other roles. See docs/guides/production.md.",
  ),
  DATABASE_UNAVAILABLE: entry(
    503,
    "reconnect",
    "The database cannot be reached",
    "Check that PostgreSQL is running and that its address is right.",
  ),
  DATABASE_MISSING: entry(
    503,
    "never",
    "There is no such database",
    "Correct the name at the end of the database's address, or create the database.",
  ),
  DATABASE_BUSY: entry(
    503,
    "wait",
    "The database could not do this right now",
    "This usually goes away by itself. If not, look at what holds the lock, or loads the server, that the detail names.",
  ),
  TOO_MANY_CONNECTIONS: entry(
    503,
    "reconnect",
    "The database has no connection left",
    "Raise max_connections or the role's CONNECTION LIMIT, or lower RUNNER_CONCURRENCY.",
  ),
  DISK_FULL: entry(
    503,
    "wait",
    "The database has no space left",
    "Make room on the disk of the database server; batch_size changes nothing.",
  ),
  TEMP_FILE_LIMIT: entry(
    422,
    "never",
    "The query needs more temporary space than it is allowed",
    "Raise temp_file_limit for the role that the detail names, or make the query sort and join less.",
  ),
  STATEMENT_TIMEOUT: entry(
    504,
    "never",
    "A statement took longer than allowed",
    "Make the query faster (an index, fewer rows), lower batch_size, or raise READ_TIMEOUT_SECONDS.",
  ),
  TARGET_AHEAD: entry(
    409,
    "never",
    "The target was written more recently than the meta-store knows",
    "The meta-store may come from an older backup, or another Vitrina writes here. See docs/guides/back-up.md; then go on from this meta-store's position with vitrina state NAME keep, or read everything with reset.",
  ),
  TARGET_REPLACED: entry(
    409,
    "never",
    "The target no longer holds what the checkpoint says",
    "Reset the state to read everything again (vitrina state NAME reset), or keep it if the target nevertheless holds every row up to the position (vitrina state NAME keep).",
  ),
  TARGET_CHANGED: entry(
    409,
    "retry",
    "The target was replaced, emptied or altered during the run",
    "The next attempt examines it again. If this recurs, find out who drops, truncates, alters or swaps it.",
  ),
  BATCH_UNBALANCED: entry(
    500,
    "never",
    "The rows of a batch do not add up",
    "This is a bug in Vitrina: nothing of the batch was kept. Please report it.",
  ),

  // Running
  LEASE_LOST: entry(409, "fenced", "Another runner holds the pipeline", "Nothing to do: the other runner continues."),
  RUNNER_LOST: entry(500, "never", "The runner disappeared", "Nothing to do: the next runner continues by itself."),
  RUNNER_CUT_OFF: entry(
    500,
    "never",
    "The runner lost its connection to the meta-store",
    "Nothing to do: the pipeline continues from its checkpoint by itself. If it recurs, look at the network between them, and at the load of the runner's machine.",
  ),
  DATABASE_RESTARTED: entry(
    500,
    "never",
    "PostgreSQL was restarted during the run",
    "Nothing to do: the pipeline continues from its checkpoint by itself.",
  ),
  RUNNER_LOST_REPEATEDLY: entry(
    500,
    "never",
    "Runners keep disappearing while they run this pipeline",
    "Look for what kills them (memory, a crash in a task), then run it again.",
  ),
  RUNNER_STOPPED: entry(503, "never", "The runner was stopped", "Nothing to do: the next runner continues by itself."),
  TASK_UNKNOWN: entry(422, "never", "No such code task", "Use the name of a task that GET /api/v1/tasks lists."),
  TASK_PARAMS_INVALID: entry(
    422,
    "never",
    "The parameters of a code task are not valid",
    "Correct the parameters after the task's name; GET /api/v1/tasks shows their schema.",
  ),
  TASK_MODULE_INVALID: entry(
    500,
    "never",
    "The code tasks cannot be loaded",
    "Correct the file named in the detail, in the tasks folder, then start again.",
  ),
  TASK_FAILED: entry(422, "never", "A code task failed", "Correct the task's code; the detail shows where it failed."),
  TASK_RETRY_LATER: entry(
    503,
    "wait",
    "A code task asks to be tried again later",
    "Usually nothing: the run is tried again by itself. If it keeps failing, look at what the task waits for.",
  ),
  TASK_TIMEOUT: entry(
    504,
    "never",
    "A code task took too long",
    "Make the task faster, lower batch_size, or raise TASK_TIMEOUT_SECONDS.",
  ),
  TASK_RESULT_INVALID: entry(
    422,
    "never",
    "A code task returned something other than it declared",
    "Return rows with exactly the declared columns, and values of their types.",
  ),
  TASK_WORKER_LOST: entry(
    500,
    "retry",
    "The Python worker ended while a task ran",
    "Look at its last lines in the detail; typical causes are os._exit, a crash in a library, and lack of memory.",
  ),
  PYTHON_UNAVAILABLE: entry(
    500,
    "never",
    "Python cannot be started",
    "Install Python 3.10 or newer on the runner's machine, or set PYTHON to the program to use.",
  ),

  // Starting
  SETTINGS_INVALID: entry(
    500,
    "never",
    "The settings are not valid",
    "Correct the environment or .env; see .env.sample.",
  ),
  PORT_TAKEN: entry(
    500,
    "never",
    "The port is taken",
    "Stop the other program, or set API_PORT (for a runner: METRICS_PORT) to a free port.",
  ),
  DATA_DIR_UNUSABLE: entry(
    500,
    "never",
    "The data folder cannot be used",
    "Make it writable, or set VITRINA_DATA_DIR to another folder.",
  ),
  DATA_DIR_IN_USE: entry(
    500,
    "never",
    "Vitrina is already running on this data folder",
    "Stop it first, or set VITRINA_DATA_DIR to another folder.",
  ),
  EMBEDDED_POSTGRES_FAILED: entry(
    500,
    "never",
    "The embedded PostgreSQL did not start",
    "See the log named in the detail, or set DATABASE_URL to a PostgreSQL of your own.",
  ),
  POOLER_SHARES_SESSIONS: entry(
    503,
    "never",
    "The connection pooler does not keep sessions",
    "Connect to PostgreSQL directly, or have PgBouncer keep a session for each client (pool_mode = session).",
  ),
  DATABASE_TOO_OLD: entry(500, "never", "The PostgreSQL server is too old", "Use PostgreSQL 15 or newer."),
  MIGRATION_CHANGED: entry(
    500,
    "never",
    "An applied migration was changed",
    "Restore the original file, and put the change into a new migration.",
  ),
  MIGRATION_FAILED: entry(500, "never", "A migration failed", "None of it was kept. Fix the cause and try again."),
  SCHEMA_TOO_NEW: entry(
    500,
    "never",
    "The database belongs to a newer Vitrina",
    "Upgrade this program to the version that made the schema.",
  ),
  SCHEMA_NOT_TRUSTED: entry(
    500,
    "never",
    "The schema etl belongs to somebody else",
    "Migrate as its owner, or make it yours if you trust what is in it.",
  ),
  ROLE_IN_USE: entry(
    500,
    "never",
    "Another Vitrina on this server uses the roles",
    "Give both the same VITRINA_ROLE_SECRET. If the other one is gone, or should also get the new passwords: ALTER ROLE … NOLOGIN, then migrate.",
  ),
  ROLE_MISSING: entry(
    500,
    "never",
    "One of Vitrina's roles does not exist on this server",
    "Was the database restored from a backup? Restore the roles before it: see docs/guides/back-up.md.",
  ),
  SCHEMA_MISSING: entry(500, "never", "The database has no Vitrina schema", "Run vitrina migrate first."),
  INTERNAL: entry(500, "retry", "Something went wrong inside Vitrina", "See the log for this request or run."),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** An error that is not in the catalogue, and carries its own entry. */
export interface DefinedError extends CatalogueEntry {
  readonly code: string;
}

/** A separate catalogue, for a part that the rest of the program does not know about. */
export function defineErrors<Code extends string>(
  entries: Readonly<Record<Code, CatalogueEntry>>,
): Readonly<Record<Code, DefinedError>> {
  const defined = Object.entries<CatalogueEntry>(entries).map(([code, known]) => [code, { code, ...known }]);
  return Object.fromEntries(defined);
}

/** One mistake in a request or a configuration, with the place where it is. */
export interface Problem {
  /** JSON pointer to the field, e.g. `/target_key/0`; empty for the whole. */
  readonly pointer: string;
  readonly message: string;
  /** Where in the text of the field, such as a query. */
  readonly line?: number;
  readonly column?: number;
}

/** The same in a list of mistakes of different kinds. */
export interface CodedProblem extends Problem {
  readonly code: ErrorCode;
}

interface ErrorDetails {
  readonly cause?: unknown;
  readonly problems?: readonly Problem[];
  /** Replaces the catalogue's hint where the situation allows a better one. */
  readonly hint?: string;
  /** Members added to the problem details of the API, e.g. the current status. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** The only error class that Vitrina throws on purpose. `message` is a whole sentence for a person. */
export class VitrinaError extends Error {
  /** Of the catalogue, or of a connector. */
  readonly code: string;
  readonly problems: readonly Problem[];
  readonly hint: string;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly #known: DefinedError;

  constructor(error: ErrorCode | DefinedError, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.#known = typeof error === "string" ? { code: error, ...ERROR_CATALOGUE[error] } : error;
    this.name = "VitrinaError";
    this.code = this.#known.code;
    this.problems = details.problems ?? [];
    this.hint = details.hint ?? this.#known.hint;
    this.extra = details.extra ?? {};
  }

  /** For making an error of the same kind with another message. */
  get known(): DefinedError {
    return this.#known;
  }

  get retry(): RetryClass {
    return this.#known.retry;
  }

  get httpStatus(): number {
    return this.#known.status;
  }

  get title(): string {
    return this.#known.title;
  }
}
