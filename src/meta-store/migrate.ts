import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import { type Client, connect } from "../postgres/connection.ts";
import { databaseError, sqlState } from "../postgres/errors.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import { rowsOf } from "./postgres/rows.ts";

const MIGRATIONS = new URL("./migrations/", import.meta.url);
const OLDEST_SERVER = 150_000;
/** Any number will do, as long as every Vitrina uses the same one. */
const LOCK_KEY = 7_612_830_446;

interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(MIGRATIONS)).filter((name) => /^\d{4}_.+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, MIGRATIONS), "utf8");
      // Line endings may differ between checkouts of the same file.
      const checksum = createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
      return { version: Number(name.slice(0, 4)), name, sql, checksum };
    }),
  );
}

/** Brings the database to this program's schema. Any number of callers may do so at once; each file is applied once. */
export async function migrate(adminUrl: string): Promise<{ applied: string[] }> {
  const client = await connect({ url: adminUrl, applicationName: "vitrina migrate" }).catch((error: unknown) => {
    throw databaseError(error, "connect to the database");
  });
  try {
    await requireSupportedServer(client);
    await client.query("SELECT pg_advisory_lock($1)", [LOCK_KEY]);
    await client.query("CREATE SCHEMA IF NOT EXISTS etl");
    await requireTrustedSchema(client);
    await client.query(`CREATE TABLE IF NOT EXISTS etl.schema_migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`);
    const pending = pendingMigrations(await readMigrations(), await appliedMigrations(client));
    for (const migration of pending) await apply(client, migration);
    return { applied: pending.map(({ name }) => name) };
  } finally {
    await client.end();
  }
}

async function requireSupportedServer(client: Client): Promise<void> {
  const { rows } = await client.query("SELECT current_setting('server_version_num')::int AS number, version()");
  if (rows[0].number >= OLDEST_SERVER) return;
  throw new VitrinaError(
    "DATABASE_TOO_OLD",
    `Vitrina needs PostgreSQL 15 or newer; this server is ${rows[0].version}.`,
  );
}

/** Tables of somebody else may have triggers and defaults of his own, which would run with all rights of a superuser. */
async function requireTrustedSchema(client: Client): Promise<void> {
  const { rows } = await client.query(
    `SELECT owner.rolname AS owner, current_user AS me
       FROM pg_namespace schema JOIN pg_roles owner ON owner.oid = schema.nspowner
      WHERE schema.nspname = 'etl' AND NOT owner.rolsuper
        AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)`,
  );
  const [found] = rows;
  if (found === undefined) return;
  throw new VitrinaError(
    "SCHEMA_NOT_TRUSTED",
    `The schema etl belongs to ${found.owner}, who could have statements of his own run as the superuser ${found.me}.`,
    {
      hint: `Migrate as ${found.owner}; or, if you trust what is in it: ALTER SCHEMA etl OWNER TO ${quoteIdentifier(found.me)}.`,
    },
  );
}

const appliedRow = z.object({ version: z.int(), name: z.string(), checksum: z.string() });
type AppliedMigration = Readonly<z.infer<typeof appliedRow>>;

async function appliedMigrations(session: SqlSession): Promise<AppliedMigration[]> {
  const applied = await session.query("SELECT version, name, checksum FROM etl.schema_migrations ORDER BY version");
  return rowsOf(appliedRow, applied);
}

/** Refuses a database whose history does not fit the files of this program. */
function pendingMigrations(known: Migration[], applied: AppliedMigration[]): Migration[] {
  for (const done of applied) {
    const file = known.find(({ version }) => version === done.version);
    if (file === undefined) {
      throw new VitrinaError(
        "SCHEMA_TOO_NEW",
        `The database has the migration ${done.name}, which this program lacks.`,
      );
    }
    if (file.checksum !== done.checksum) {
      throw new VitrinaError("MIGRATION_CHANGED", `The migration ${file.name} was changed after it had been applied.`);
    }
  }
  const versions = new Set(applied.map(({ version }) => version));
  return known.filter(({ version }) => !versions.has(version));
}

async function apply(client: Client, migration: Migration): Promise<void> {
  try {
    await client.query("BEGIN");
    await client.query(migration.sql);
    await client.query("INSERT INTO etl.schema_migrations (version, name, checksum) VALUES ($1, $2, $3)", [
      migration.version,
      migration.name,
      migration.checksum,
    ]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    const reason = error instanceof Error ? error.message : String(error);
    throw new VitrinaError("MIGRATION_FAILED", `The migration ${migration.name} failed: ${reason}.`, { cause: error });
  }
}

const UNDEFINED_TABLE = "42P01";
const INVALID_SCHEMA = "3F000";

/** Throws unless the database is exactly at this program's schema. */
export async function requireCurrentSchema(session: SqlSession): Promise<void> {
  const applied = await appliedMigrations(session).catch((error: unknown) => {
    if ([UNDEFINED_TABLE, INVALID_SCHEMA].includes(sqlState(error) ?? "")) return [];
    throw error;
  });
  const [missing] = pendingMigrations(await readMigrations(), applied);
  if (missing === undefined) return;
  throw new VitrinaError("SCHEMA_MISSING", `The database lacks the migration ${missing.name}.`);
}
