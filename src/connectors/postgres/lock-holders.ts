import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";

const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Sessions that may hold up another one, strongest lock first: a writer of the table $1.$2 or, without a table, a
 * reader, which only the strongest lock on any table stops. Only the first word of the statement, since the rest can
 * contain values of rows. What the role may not see is null.
 */
const HOLDERS = `
  SELECT n.nspname AS schema, c.relname AS table, a.pid, a.usename, a.application_name, l.mode, a.xact_start,
         substring(a.query FROM '^\\s*([A-Za-z]+)') AS verb
    FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)
    JOIN pg_catalog.pg_class c ON c.oid = l.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid()
     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
     AND CASE WHEN $1::text IS NULL
              THEN l.mode = 'AccessExclusiveLock' AND c.relkind IN ('r', 'p', 'm', 'v', 'f') AND n.nspname !~ '^pg_'
              ELSE n.nspname = $1 AND c.relname = $2::text AND l.mode <> 'AccessShareLock' END
   ORDER BY l.mode IN ('RowShareLock', 'RowExclusiveLock'), a.xact_start, l.relation
   LIMIT 3`;

/**
 * Adds to a lock timeout who holds the lock, as far as that can still be seen. Without a table it was one of those that
 * a query reads. The session must be outside a transaction.
 */
export async function namingHolders(
  client: Client,
  table: TableName | undefined,
  error: unknown,
  failure: VitrinaError,
): Promise<VitrinaError> {
  if (sqlState(error) !== LOCK_NOT_AVAILABLE) return failure;
  const { rows } = await client.query(HOLDERS, [table?.schema, table?.table]).catch(() => ({ rows: [] }));
  if (rows.length === 0) return failure;
  const message = `${failure.message} ${rows.map(describe).join(" ")}`;
  return new VitrinaError(failure.known, message, { cause: error });
}

/** A session that locks rows locks the table weakly; whether these were the rows waited for cannot be seen. */
function describe(holder: Record<string, string | null>): string {
  const { schema, table, pid, usename, application_name: program, mode, xact_start: since, verb } = holder;
  const facts = [`user ${usename}`, program ? `application "${program}"` : null, `${mode}`];
  if (since) facts.push(`since ${since}`);
  if (verb) facts.push(`last statement ${verb.toUpperCase()}`);
  const name = quoteTable({ schema: schema ?? "", table: table ?? "" });
  const isLocked = mode?.startsWith("Row") ? `Rows of ${name} may be locked` : `${name} is locked`;
  return `${isLocked} by process ${pid} (${facts.filter((fact) => fact !== null).join(", ")}).`;
}
