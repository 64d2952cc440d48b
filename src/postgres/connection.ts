import pg from "pg";
import type { SqlSession } from "../domain/sql-session.ts";
import { boundMessages } from "./bounded-messages.ts";
import { takeSession } from "./session.ts";

export type Client = pg.Client;

/** What the meta-store needs from a connection pool. */
export interface Pool extends SqlSession {
  connect(): Promise<SqlSession & { release(broken?: Error): void }>;
  end(): Promise<void>;
  /** Runs last in each transaction. */
  readonly beforeCommit?: (session: SqlSession) => Promise<void>;
}

const INT8 = 20;

/** Counters and epochs fit a double; they are never cursor values. */
const metaTypes = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format as "text"),
} as pg.CustomTypesConfig;

/** The only form in which the driver knows times: it would take all others for no time at all. */
const READABLE_SETTINGS = { DateStyle: "ISO, YMD", IntervalStyle: "postgres" };

const readable = <Options extends ConnectionOptions>(options: Options): Options => ({
  ...options,
  settings: { ...options.settings, ...READABLE_SETTINGS },
});

/** Every value as the text PostgreSQL printed, so that nothing is rounded on the way. */
const textTypes = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;

export interface ConnectionOptions {
  readonly url: string;
  /** Shown in pg_stat_activity, so that an operator sees who is who. */
  readonly applicationName: string;
  /** Server settings of the session, e.g. `{ statement_timeout: "20s" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Ends the connection, with whatever statement is under way. */
  readonly endSignal?: AbortSignal | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;

function clientConfig(options: ConnectionOptions, types: pg.CustomTypesConfig): pg.ClientConfig {
  return {
    connectionString: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types,
  };
}

/** A pool for the meta-store: short statements, ordinary JavaScript values. */
export function createPool(options: ConnectionOptions & { readonly max: number }): Pool {
  const config = clientConfig(options, metaTypes);
  const pool = new pg.Pool({
    ...config,
    max: options.max,
    idleTimeoutMillis: 30_000,
    onConnect: (client) => {
      boundMessages(client);
      return takeSession(client, config, readable(options).settings);
    },
  });
  // An idle connection that the server closes must not end the process; the next query reports the problem.
  pool.on("error", () => undefined);
  // The same for one that is lost while it is in use, between two statements of a transaction.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** One connection with ordinary JavaScript values. */
export async function connect(options: ConnectionOptions): Promise<Client> {
  return open(clientConfig(options, metaTypes), readable(options));
}

/** One connection of the data path: all values are texts. */
export async function connectForData(options: ConnectionOptions): Promise<Client> {
  return open(clientConfig(options, textTypes), options);
}

/**
 * Gives up what a session has, but for what it has planned; `resumeForData` makes it usable again. May take no longer than
 * connecting: whoever takes the session over waits for it.
 */
export async function emptySession(client: Client): Promise<void> {
  await client.query({
    text: `CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *;
      SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP`,
    query_timeout: CONNECT_TIMEOUT_MS,
  } as pg.QueryConfig);
}

/** For a session of `connectForData` that was emptied. Fails if it has ended meanwhile. */
export async function resumeForData(client: Client, options: ConnectionOptions): Promise<void> {
  await takeSession(client, clientConfig(options, textTypes), options.settings);
}

async function open(config: pg.ClientConfig, { settings, endSignal }: ConnectionOptions): Promise<Client> {
  endSignal?.throwIfAborted();
  const client = new pg.Client(config);
  endInTime(client);
  // Without a listener a lost connection would end the process; the pending query reports it anyway.
  client.on("error", () => undefined);
  await client.connect();
  boundMessages(client);
  try {
    await takeSession(client, config, settings);
    if (endSignal !== undefined) endWith(client, endSignal);
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

const END_TIMEOUT_MS = 5000;

/** A server that went away without a word does not take its leave either: then the connection is dropped. */
function endInTime(client: Client): void {
  const end = client.end.bind(client) as () => Promise<void>;
  const { connection } = client as unknown as { connection: { readonly stream: { destroy(): void } } };
  client.end = (async () => {
    const timer = setTimeout(() => connection.stream.destroy(), END_TIMEOUT_MS);
    await end().finally(() => clearTimeout(timer));
  }) as Client["end"];
}

/**
 * The server notices that nobody waits for the statement any more (client_connection_check_interval), and cancels it.
 * Returns how to undo it.
 */
export function endWith(client: Client, signal: AbortSignal): () => void {
  const end = (): void => void client.end();
  const undo = (): void => {
    signal.removeEventListener("abort", end);
    client.off("end", undo);
  };
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  client.once("end", undo);
  return undo;
}

/** Runs `work` in a transaction: committed when it resolves, rolled back when it throws. */
export async function inTransaction<T>(pool: Pool, work: (session: SqlSession) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await pool.beforeCommit?.(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch((rollbackError: Error) => {
      broken = rollbackError;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}
