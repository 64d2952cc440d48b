import { createHash } from "node:crypto";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { ChangesFrom } from "../../domain/follow.ts";
import type { Column } from "../../domain/row.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { type Client, connectForData } from "../../postgres/connection.ts";
import { databaseError, loadError, sqlState } from "../../postgres/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { EXACT_TEXT_SETTINGS } from "./data-session.ts";
import { type Watched, withDeadline } from "./deadline.ts";
import { namingHolders } from "./lock-holders.ts";
import type { OrderColumn } from "./query-text.ts";

export interface PostgresSourceConfig extends Watched {
  /** How long the source may stay silent; a sorted query does most of its work before its first row. */
  readonly readTimeoutMs: number;
  /** A batch ends with the row that reaches this, however few rows it has. */
  readonly batchBytes: number;
  /** Where it tells of its changes; without it by the change table. */
  readonly changes?: ChangesFrom | undefined;
  /** Ends every session. */
  readonly endSignal?: AbortSignal | undefined;
}

/** Everything about a source happens in sessions that can only read. */
export async function connectToSource(
  config: Pick<PostgresSourceConfig, "url" | "applicationName" | "endSignal">,
  settings: Readonly<Record<string, string>> = {},
): Promise<Client> {
  return connectForData({
    url: config.url,
    applicationName: config.applicationName,
    endSignal: config.endSignal,
    settings: {
      ...EXACT_TEXT_SETTINGS,
      default_transaction_read_only: "on",
      // A load takes as long as it takes; silence is watched by the reader itself.
      statement_timeout: "0",
      // Nor has it a limit for what is done with its rows: a round idles in its snapshot while a chunk is written.
      idle_in_transaction_session_timeout: "0",
      // Waiting for a lock is told apart from a slow query, because it passes: so this limit is the shortest.
      lock_timeout: "10s",
      client_connection_check_interval: "5s",
      jit: "off",
      ...settings,
    },
  }).catch((error: unknown) => {
    throw databaseError(error, "connect to the source");
  });
}

export const BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/** In the snapshot that another session holds. */
export const beginIn = (snapshot: string): string => `${BEGIN}; SET TRANSACTION SNAPSHOT ${quoteLiteral(snapshot)}`;

/** What the server says since PostgreSQL 17, before it, and while the session that holds the snapshot is ending. */
const SNAPSHOT_IS_GONE = ["42704", "22023", "55000"];

/**
 * Why a transaction could not begin in a snapshot. The session that holds it idles for as long as the load takes, so it
 * may be ended. That is neither the query's fault nor a row's, and the next attempt takes another snapshot.
 */
export function beginError(error: unknown): unknown {
  if (!SNAPSHOT_IS_GONE.includes(sqlState(error) ?? "")) return error;
  const reason = "the session that held its snapshot was ended, by a person or by a limit such as transaction_timeout";
  return new VitrinaError("DATABASE_BUSY", `Could not read the source: ${reason}.`, { cause: error });
}

/** A session for reading rows, in that snapshot or in one of its own. */
export async function openReadSession(config: PostgresSourceConfig, snapshot?: string): Promise<Client> {
  const client = await connectToSource(config);
  try {
    await client.query(snapshot === undefined ? BEGIN : beginIn(snapshot));
    return client;
  } catch (error) {
    await client.end();
    throw sourceError(beginError(error));
  }
}

/** A borrower of the session sets its own limits; this one ends whatever exceeds them. */
const LENDING_MS = 30_000;

/** One connection for all questions that a run asks its source; each question has a snapshot of its own. */
export interface QuestionSession {
  ask<T>(question: (client: Client) => Promise<T>): Promise<T>;
  /** For callers that begin and end transactions themselves. */
  lend<T>(use: (session: SqlSession) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export function questionSession(
  config: Omit<PostgresSourceConfig, "batchBytes">,
  settings?: Readonly<Record<string, string>>,
): QuestionSession {
  let connected: Promise<Client> | undefined;
  const withClient = async <T>(use: (client: Client) => Promise<T>): Promise<T> => {
    connected ??= connectToSource(config, settings);
    const own = connected;
    try {
      return await use(await own);
    } catch (error) {
      const broken = await own.catch(() => undefined);
      // It may have been closed meanwhile, and another one opened.
      if (connected === own) connected = undefined;
      if (broken === undefined) throw sourceError(error);
      const failure = await lockedSourceError(broken, error);
      await broken.end().catch(() => undefined);
      throw failure;
    }
  };
  return {
    ask: (question) =>
      withClient(async (client) => {
        await client.query(`${BEGIN}; SET LOCAL statement_timeout = ${config.readTimeoutMs}`);
        const answer = await withDeadline(client, 2 * config.readTimeoutMs, config, () => question(client));
        await client.query("COMMIT");
        return answer;
      }),
    lend: (use) =>
      withClient((client) =>
        withDeadline(client, LENDING_MS, config, () =>
          use({ query: (text, values) => client.query({ text, values, queryMode: "extended" } as never) }),
        ),
      ),
    async close() {
      await connected?.then((client) => client.end()).catch(() => undefined);
      connected = undefined;
    },
  };
}

/** A value the query itself cannot compute (division by zero) is the query's fault, not that of a row in the target. */
export function sourceError(error: unknown): VitrinaError {
  const failure = loadError(error, "read the source", "SOURCE_QUERY_FAILED");
  return failure.retry === "row" ? new VitrinaError("SOURCE_QUERY_FAILED", failure.message, { cause: error }) : failure;
}

/** The same, if the session may have waited for a lock. The session is used for nothing else afterwards. */
export async function lockedSourceError(client: Client, error: unknown): Promise<VitrinaError> {
  if (sqlState(error) !== undefined) await client.query("ROLLBACK").catch(() => undefined);
  return namingHolders(client, undefined, error, sourceError(error));
}

/** The extended protocol takes exactly one statement, so a query cannot smuggle in a second one. */
export function extended(client: Client, text: string, values: readonly unknown[] = []) {
  return client.query<(string | null)[]>({ text, values, rowMode: "array", queryMode: "extended" } as never);
}

/**
 * For questions to the catalogue that one session asks again and again, in texts that never change: planning them takes
 * longer than answering. Between `PLAN_ONCE` and `PLAN_AS_USUAL` one plan serves all values; the server would otherwise
 * plan each question five times before it remembers. Tables whose size changes are not asked like this.
 */
export function rememberingPlans(client: Client): SqlSession {
  return {
    query: (text, values) =>
      client.query({ name: createHash("md5").update(text).digest("hex"), text, values: [...(values ?? [])] }),
  };
}
export const PLAN_ONCE = "SET LOCAL plan_cache_mode = force_generic_plan";
export const PLAN_AS_USUAL = "SET LOCAL plan_cache_mode = DEFAULT";

/** Types are found by the names they print, not by `regtype`: that refuses whoever may not use the schema of one. */
export async function orderColumns(
  client: Client,
  columns: readonly Column[],
  names: readonly string[],
): Promise<OrderColumn[]> {
  const ordered = names.flatMap((name) => columns.find((column) => column.name === name) ?? []);
  const { rows } = await client.query<{ collatable: string }>(
    `SELECT EXISTS (SELECT FROM pg_type p
                      WHERE t.type IN (format_type(p.oid, NULL), format_type(p.oid, -1)) AND p.typcollation <> 0) AS collatable
       FROM unnest($1::text[]) WITH ORDINALITY AS t (type, n) ORDER BY n`,
    [ordered.map(({ type }) => type.replace(/\(.*\)/, ""))],
  );
  return ordered.map((column, index) => ({ ...column, collatable: rows[index]?.collatable === "t" }));
}
