import pg from "pg";
import { VitrinaError } from "../domain/error-catalogue.ts";

type Session = Pick<pg.ClientBase, "query">;
type SessionSettings = Readonly<Record<string, string>>;

/**
 * Names that a statement does not qualify are the server's own. Whoever owns the database, or a schema that is searched
 * by default, could otherwise shadow a function or an operator, and have theirs run with the rights of this session.
 */
const OWN_NAMES = { search_path: "pg_catalog, pg_temp" };

/** What the guard read as a string must not become something else, nor a statement of ours, where the old default was brought back. */
const OWN_STRINGS = { standard_conforming_strings: "on" };

/** A database or a role may have another default, with which statements fail that wait for each other's rows. */
const OWN_TRANSACTIONS = { default_transaction_isolation: "read committed", default_transaction_deferrable: "off" };

/**
 * The first thing in every session. A statement, and not an option of the connection: a pooler does not pass options
 * on, and those in a URL would override them.
 */
export async function takeSession(
  session: Session,
  connection: pg.ClientConfig,
  settings: SessionSettings = {},
): Promise<void> {
  const wanted = { ...settings, ...OWN_TRANSACTIONS, ...OWN_STRINGS, ...OWN_NAMES };
  const announced = (session as { processID?: number | null }).processID ?? 0;
  if (await applyIn(session, announced, wanted)) return;
  const backend = await backendOf(session);
  await requireBackendOfItsOwn(session, backend, connection);
  if (!(await applyIn(session, backend, wanted))) throw sharedBackends();
}

/** Part of connecting, so it may take no longer. */
const FIRST_ANSWER_MS = 10_000;

/** Changes nothing, and reports it, if the backend is a different one: a pooler may hand it to other programs next. */
async function applyIn(session: Session, backend: number, settings: SessionSettings): Promise<boolean> {
  // Every name and operator qualified: here the search path is still that of the database's owner.
  const changes = Object.keys(settings).map(
    (_, index) =>
      `pg_catalog.set_config($${2 * index + 2}::pg_catalog.text, $${2 * index + 3}::pg_catalog.text, false)`,
  );
  const { rowCount } = await session.query({
    text: `SELECT ${changes.join(", ")} WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) $1::pg_catalog.int4`,
    values: [backend, ...Object.entries(settings).flat()],
    query_timeout: FIRST_ANSWER_MS,
  } as pg.QueryConfig);
  return rowCount === 1;
}

async function backendOf(session: Session): Promise<number> {
  const { rows } = await session.query("SELECT pg_catalog.pg_backend_pid() AS pid");
  return Number(rows[0]?.pid);
}

/** Poolers that were seen to keep a backend for each session; checked once per process. */
const keepsSessions = new Set<string>();
const POOLER_ATTEMPTS = 3;
/** A pooler whose backends are all taken makes the second session wait: then the first has one of its own. */
const POOLER_PATIENCE_MS = 3_000;

/** The server announced a different process than the one that answers, so there is a pooler in between. */
async function requireBackendOfItsOwn(session: Session, backend: number, connection: pg.ClientConfig): Promise<void> {
  const url = connection.connectionString ?? "";
  if (keepsSessions.has(url)) return;
  const second = new pg.Client({ ...connection, query_timeout: POOLER_PATIENCE_MS });
  second.on("error", () => undefined);
  await second.connect();
  try {
    for (let attempt = 0; attempt < POOLER_ATTEMPTS; attempt += 1) {
      await second.query("BEGIN");
      const other = await backendOf(second);
      // While the second holds a backend in its transaction, the first must still have the one it had.
      if (other === backend || (await backendOf(session)) !== backend) throw sharedBackends();
      await second.query("COMMIT");
    }
  } catch (error) {
    if (!(error instanceof Error && /^Query read timeout/.test(error.message))) throw error;
  } finally {
    await second.end().catch(() => undefined);
  }
  keepsSessions.add(url);
}

function sharedBackends(): VitrinaError {
  return new VitrinaError(
    "POOLER_SHARES_SESSIONS",
    "The connection pooler gives one session to several clients in turn.",
  );
}
