import { createHmac } from "node:crypto";
import { resolve } from "node:path";
import { z } from "zod";
import { CONNECTORS, type Registry } from "../connectors/registry.ts";
import { type ConfiguredSink, isTargetPattern, openTargets, type Targets } from "../connectors/targets.ts";
import type { ChangesFrom } from "../domain/follow.ts";
import { LOG_LEVELS, type LogLevel } from "../domain/log-level.ts";
import { commaList, isPostgresUrl, schemaList, wholeNumber } from "../domain/setting-fields.ts";
import { type ApiSettings, apiFields, apiMistakes, apiSettings } from "./api-settings.ts";
import { readChangeSettings } from "./change-settings.ts";
import { type Environment, invalidSettings, readEnvironment } from "./environment.ts";
import { type TracingSettings, tracingFields, tracingSettings } from "./tracing-settings.ts";

/** The only reader of the environment. Everything is checked at once, and one message lists every mistake. */

type DatabaseRole = "reader" | "writer" | "meta" | "loader";

const databaseUrl = z.string().refine(isPostgresUrl, "is not a PostgreSQL URL (postgres://user:password@host:5432/db)");

const logLevel = z.enum(LOG_LEVELS, "is not debug, info, warn, error or silent");

const schema = z.object({
  DATABASE_URL: databaseUrl.optional(),
  META_DATABASE_URL: databaseUrl.optional(),
  READER_DATABASE_URL: databaseUrl.optional(),
  WRITER_DATABASE_URL: databaseUrl.optional(),
  LOADER_DATABASE_URL: databaseUrl.optional(),
  VITRINA_ROLE_SECRET: z.string().min(16, "is shorter than 16 characters").optional(),
  VITRINA_DATA_DIR: z.string().default(".vitrina"),
  ...apiFields,
  PREVIEW_TIMEOUT_SECONDS: wholeNumber(1, 60).default(5),
  SOURCE_SCHEMAS: schemaList.default(["content", "ugc"]),
  TARGETS: commaList.default([]),
  RUNNER_CONCURRENCY: wholeNumber(1, 100).default(4),
  RUNNER_POLL_SECONDS: wholeNumber(1, 3600).default(5),
  LEASE_SECONDS: wholeNumber(3, 3600).default(30),
  READ_TIMEOUT_SECONDS: wholeNumber(1, 86_400).default(600),
  BATCH_MIB: wholeNumber(1, 1024).default(64),
  RETRY_ATTEMPTS: wholeNumber(1, 20).default(3),
  RETRY_BACKOFF_SECONDS: z
    .string()
    .regex(/^\d+(,\d+)*$/, "is not a list of whole seconds, such as 1,2,4")
    .transform((text) => text.split(",").map((seconds) => Number(seconds) * 1000))
    .default([1000, 2000, 4000]),
  RETRY_LONGEST_PAUSE_SECONDS: wholeNumber(0, 3600).default(60),
  STOP_TIMEOUT_SECONDS: wholeNumber(1, 3600).default(20),
  RUN_HISTORY_DAYS: wholeNumber(0, 36_500).default(90),
  TASKS_DIR: z.string().optional(),
  PYTHON: z.string().default("python3"),
  TASK_TIMEOUT_SECONDS: wholeNumber(1, 3600).default(60),
  TASK_MEMORY_MB: wholeNumber(64, 65_536).default(1024),
  METRICS_HOST: z.string().default("127.0.0.1"),
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  VITRINA_FAULT: z.string().optional(),
  LOG_LEVEL: logLevel.default("info"),
  RUN_LOG_LEVEL: logLevel.default("info"),
  ...tracingFields,
});

/** Python and the libraries of its tasks may take a while to import. */
const TASK_START_TIMEOUT_MS = 60_000;

export interface DatabaseUrls extends Readonly<Record<Exclude<DatabaseRole, "loader">, string>> {
  /** Without it, rows pass through the runner even within one database. */
  readonly loader: string | undefined;
  /** Only for migrations and the demo; nothing else connects with it. */
  readonly admin: string | undefined;
}

export interface Settings {
  /** `undefined`: the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly api: ApiSettings;
  /** How long a query that is only tried out may take. */
  readonly previewTimeoutMs: number;
  readonly sourceSchemas: readonly string[];
  /** The connectors with their settings. */
  readonly sinks: readonly ConfiguredSink[];
  readonly targets: Targets;
  /** The URLs of the source connections by name; `main` is the reader's. */
  sources(urls: Pick<DatabaseUrls, "reader">): {
    readonly descriptions: Registry["sources"];
    readonly addresses: ReadonlyMap<string, string>;
    /** Of those that do not tell of their changes by a table. */
    readonly changes: ReadonlyMap<string, ChangesFrom>;
  };
  readonly runner: {
    readonly concurrency: number;
    readonly pollMs: number;
    readonly leaseMs: number;
    readonly readTimeoutMs: number;
    readonly batchBytes: number;
    readonly stopTimeoutMs: number;
    /** 0: for ever. */
    readonly runHistoryDays: number;
    readonly retry: {
      readonly maxAttempts: number;
      readonly backoffMs: readonly number[];
      readonly longestPauseMs: number;
    };
  };
  readonly tasks: {
    readonly folder: string | undefined;
    readonly python: string;
    readonly batchTimeoutMs: number;
    readonly startTimeoutMs: number;
    readonly memoryLimitMib: number;
    /** Passed on to the worker only in part. */
    readonly environment: Environment;
  };
  /** Where a separate runner process serves its metrics and health; without a port, nowhere. */
  readonly metrics: { readonly host: string; readonly port: number | undefined };
  /** For tests: injects faults at named points of the runner. */
  readonly faults: string | undefined;
  readonly logLevel: LogLevel;
  /** For the lines that are kept with each run. */
  readonly runLogLevel: LogLevel;
  /** `undefined`: no spans. */
  readonly tracing: TracingSettings | undefined;
  /** The URL of each role; `adminUrl` is DATABASE_URL or the embedded server's. */
  databaseUrls(adminUrl?: string): DatabaseUrls;
}

/** Reads the environment, and below it `.env` of the working folder. */
export function loadSettings(environment: Environment = process.env, folder: string = process.cwd()): Settings {
  return parseSettings(readEnvironment(environment, folder), folder);
}

export function parseSettings(environment: Environment, folder: string, registry: Registry = CONNECTORS): Settings {
  const parsed = schema.safeParse(environment);
  const sources = readSources(registry, environment);
  const { sinks, mistakes: ofSinks } = readSinks(registry, environment, folder);
  const mistakes = [
    ...mistakesOf(parsed),
    ...ofSinks,
    ...sources.mistakes,
    ...apiMistakes(environment),
    ...patternMistakes(registry, parsed.data?.TARGETS ?? []),
  ];
  if (!parsed.success || mistakes.length > 0) throw invalidSettings(mistakes);
  const env = parsed.data;
  return {
    databaseUrl: env.DATABASE_URL,
    dataDir: resolve(folder, env.VITRINA_DATA_DIR),
    api: apiSettings(env),
    previewTimeoutMs: env.PREVIEW_TIMEOUT_SECONDS * 1000,
    sourceSchemas: env.SOURCE_SCHEMAS,
    sinks,
    targets: openTargets(sinks, env.TARGETS),
    sources: ({ reader }) => ({
      descriptions: registry.sources,
      addresses: new Map([["main", reader], ...sources.addresses]),
      changes: sources.changes,
    }),
    runner: {
      concurrency: env.RUNNER_CONCURRENCY,
      pollMs: env.RUNNER_POLL_SECONDS * 1000,
      leaseMs: env.LEASE_SECONDS * 1000,
      readTimeoutMs: env.READ_TIMEOUT_SECONDS * 1000,
      batchBytes: env.BATCH_MIB * 1024 * 1024,
      stopTimeoutMs: env.STOP_TIMEOUT_SECONDS * 1000,
      runHistoryDays: env.RUN_HISTORY_DAYS,
      retry: {
        maxAttempts: env.RETRY_ATTEMPTS,
        backoffMs: env.RETRY_BACKOFF_SECONDS,
        longestPauseMs: env.RETRY_LONGEST_PAUSE_SECONDS * 1000,
      },
    },
    tasks: {
      folder: env.TASKS_DIR === undefined ? undefined : resolve(folder, env.TASKS_DIR),
      python: env.PYTHON,
      batchTimeoutMs: env.TASK_TIMEOUT_SECONDS * 1000,
      startTimeoutMs: TASK_START_TIMEOUT_MS,
      memoryLimitMib: env.TASK_MEMORY_MB,
      environment,
    },
    metrics: { host: env.METRICS_HOST, port: env.METRICS_PORT },
    faults: env.VITRINA_FAULT,
    logLevel: env.LOG_LEVEL,
    runLogLevel: env.RUN_LOG_LEVEL,
    tracing: tracingSettings(env),
    databaseUrls: (adminUrl = env.DATABASE_URL) => roleUrls(env, adminUrl),
  };
}

function mistakesOf({ error }: z.ZodSafeParseResult<unknown>): string[] {
  return (error?.issues ?? []).map(({ path, message }) => `${path.join(".")} ${message}`);
}

function readSinks(
  { sinks }: Registry,
  environment: Environment,
  folder: string,
): { readonly sinks: readonly ConfiguredSink[]; readonly mistakes: readonly string[] } {
  const read = sinks.map((description) => ({
    description,
    parsed: z.object(description.settings.fields).safeParse(environment),
  }));
  return {
    sinks: read.flatMap(({ description, parsed: { data } }) =>
      data === undefined ? [] : [{ description, settings: description.settings.read(data, folder) }],
    ),
    mistakes: read.flatMap(({ parsed }) => mistakesOf(parsed)),
  };
}

function patternMistakes({ sinks }: Registry, patterns: readonly string[]): string[] {
  const isPattern = (text: string): boolean => isTargetPattern(sinks, text);
  if (patterns.every(isPattern)) return [];
  return ["TARGETS is not a list of targets, such as analytics.orders,es:films, separated by commas"];
}

function readSources(
  { sources }: Registry,
  environment: Environment,
): {
  readonly addresses: ReadonlyMap<string, string>;
  readonly changes: ReadonlyMap<string, ChangesFrom>;
  readonly mistakes: readonly string[];
} {
  const addresses = new Map<string, string>();
  const mistakes: string[] = [];
  const forms = sources.map(({ form }) => form).join(" or ");
  for (const [name, value] of Object.entries(environment)) {
    const connection = /^SOURCE_([A-Z][A-Z0-9_]*)_URL$/.exec(name)?.[1]?.toLowerCase();
    if (connection === undefined || value === undefined) continue;
    if (connection === "main") mistakes.push(`${name} names the main connection; set READER_DATABASE_URL instead`);
    else if (!sources.some((source) => source.accepts(value))) mistakes.push(`${name} is not ${forms}`);
    else addresses.set(connection, value);
  }
  const { changes, mistakes: ofChanges } = readChangeSettings(environment, new Set(["main", ...addresses.keys()]));
  return { addresses, changes, mistakes: [...mistakes, ...ofChanges] };
}

/**
 * Each role logs in as itself. Its URL is given, or made from the administrator's: same server and database, the
 * role's name, and a password derived from a secret that only the administrator has.
 */
function roleUrls(env: z.infer<typeof schema>, adminUrl: string | undefined): DatabaseUrls {
  const given = { reader: env.READER_DATABASE_URL, writer: env.WRITER_DATABASE_URL, meta: env.META_DATABASE_URL };
  const derive = (role: DatabaseRole): string => {
    if (adminUrl === undefined)
      throw invalidSettings([`${role.toUpperCase()}_DATABASE_URL or DATABASE_URL must be set`]);
    const url = new URL(adminUrl);
    const secret = env.VITRINA_ROLE_SECRET ?? decodeURIComponent(url.password);
    if (secret === "") {
      throw invalidSettings([
        "DATABASE_URL has no password: set VITRINA_ROLE_SECRET, from which the roles' passwords are derived",
      ]);
    }
    url.username = `vitrina_${role}`;
    url.password = createHmac("sha256", secret).update(`vitrina role ${role}`).digest("base64url");
    return url.href;
  };
  return {
    admin: adminUrl,
    reader: given.reader ?? derive("reader"),
    writer: given.writer ?? derive("writer"),
    meta: given.meta ?? derive("meta"),
    // If reader or writer are given, they may be logins of different databases; then no role can be both.
    loader: env.LOADER_DATABASE_URL ?? (given.reader === given.writer && adminUrl ? derive("loader") : undefined),
  };
}
