import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Client } from "../../postgres/connection.ts";
import { sqlState } from "../../postgres/errors.ts";
import type { TableName } from "./target-table.ts";

const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Sessions whose locks a writer of the table may wait for, the strongest first. Of the statement only its first word:
 * the rest can hold values of rows. What the role may not see is null.
 */
const HOLDERS = `
  SELECT a.pid, a.usename, a.application_name, l.mode, a.xact_start,
         substring(a.query FROM '^\\s*([A-Za-z]+)') AS verb
    FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)
   WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid()
     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
     AND l.relation = pg_catalog.to_regclass(pg_catalog.format('%I.%I', $1::text, $2::text))
     AND l.mode <> 'AccessShareLock'
   ORDER BY l.mode IN ('RowShareLock', 'RowExclusiveLock'), a.xact_start
   LIMIT 3`;

/** A lock that was waited for in vain names who holds it, as far as that can still be seen. */
export async function namingHolders(
  client: Client,
  { schema, table }: TableName,
  error: unknown,
  failure: VitrinaError,
): Promise<VitrinaError> {
  if (sqlState(error) !== LOCK_NOT_AVAILABLE) return failure;
  const { rows } = await client.query(HOLDERS, [schema, table]).catch(() => ({ rows: [] }));
  if (rows.length === 0) return failure;
  const message = `${failure.message} The table is locked by ${rows.map(describe).join("; ")}.`;
  return new VitrinaError(failure.known, message, { cause: error });
}

function describe(holder: Record<string, string | null>): string {
  const { pid, usename, application_name: program, mode, xact_start: since, verb } = holder;
  const facts = [`user ${usename}`, program ? `application "${program}"` : null, `${mode}`];
  if (since) facts.push(`since ${since}`);
  if (verb) facts.push(`last statement ${verb.toUpperCase()}`);
  return `process ${pid} (${facts.filter((fact) => fact !== null).join(", ")})`;
}
