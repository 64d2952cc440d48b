import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type Client, connect } from "../postgres/connection.ts";
import { databaseError, sqlState } from "../postgres/errors.ts";
import { quoteIdentifier, quoteLiteral } from "../postgres/identifiers.ts";

/** Lets the roles of the migrations log in with the passwords of their URLs. Changes nothing where they already can. */
export async function enableRoleLogins(adminUrl: string, roleUrls: readonly string[]): Promise<void> {
  for (const url of roleUrls) {
    if (await canLogIn(url)) continue;
    const [role, password] = [decodeURIComponent(new URL(url).username), decodeURIComponent(new URL(url).password)];
    await asAdmin(adminUrl, `let ${role} log in`, async (client) => {
      const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [role]);
      if (rowCount === 0) throw new VitrinaError("ROLE_MISSING", `There is no role ${role} on this server.`);
      await requireNotInUseElsewhere(client, role);
      await client.query(`ALTER ROLE ${quoteIdentifier(role)} LOGIN PASSWORD ${quoteLiteral(scramVerifier(password))}`);
    });
  }
}

/** Roles belong to the whole server. A new password would lock out the Vitrina of another database, without a word. */
async function requireNotInUseElsewhere(client: Client, role: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT DISTINCT d.datname AS name
       FROM pg_roles r
       JOIN pg_shdepend s ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
       JOIN pg_database d ON d.oid = s.dbid AND d.datname <> current_database()
      WHERE r.rolname = $1 AND r.rolcanlogin ORDER BY 1 LIMIT 3`,
    [role],
  );
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => `"${name as string}"`).join(", ");
  throw new VitrinaError(
    "ROLE_IN_USE",
    `The role ${role} has another password already, and the database ${names} of this server uses it.`,
  );
}

const SCRAM_ITERATIONS = 4096;

/** What PostgreSQL stores instead of a password. Sent in its place, so that no server log can show the password. */
function scramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, 32, "sha256");
  const hmac = (text: string): Buffer => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest();
  const keys = `${storedKey.toString("base64")}:${hmac("Server Key").toString("base64")}`;
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString("base64")}$${keys}`;
}

async function canLogIn(url: string): Promise<boolean> {
  try {
    await (await connect({ url, applicationName: "vitrina migrate" })).end();
    return true;
  } catch (error) {
    if (sqlState(error)?.startsWith("28")) return false;
    throw databaseError(error, "connect to the database");
  }
}

/** The writer, where it may make tables and the administrator may speak for it. */
const MAKERS = `
  SELECT rolname AS maker FROM pg_roles
   WHERE rolname = 'vitrina_writer' AND pg_has_role(oid, 'USAGE') AND has_schema_privilege(oid, $1, 'CREATE')`;

/** The reader may read the source schemas, as far as they exist: they belong to others, and may come later. Returns those that do. */
export async function grantSourceAccess(adminUrl: string, schemas: readonly string[]): Promise<string[]> {
  return asAdmin(adminUrl, "grant the reader access to the sources", async (client) => {
    const { rows: here } = await client.query("SELECT current_database() AS name");
    // Everybody has this right, unless it was taken away. The guard examines queries by temporary views.
    await client.query(`GRANT TEMPORARY ON DATABASE ${quoteIdentifier(here[0]?.name as string)} TO vitrina_reader`);
    const { rows } = await client.query("SELECT nspname AS name FROM pg_namespace WHERE nspname = ANY($1) ORDER BY 1", [
      schemas,
    ]);
    for (const { name } of rows) {
      const schema = quoteIdentifier(name as string);
      await client.query(`GRANT USAGE ON SCHEMA ${schema} TO vitrina_reader`);
      await client.query(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO vitrina_reader`);
      await client.query(`ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT ON TABLES TO vitrina_reader`);
      // Marts that other marts read are made by the writer, while Vitrina runs.
      const { rows: writers } = await client.query(MAKERS, [name]);
      for (const { maker } of writers) {
        const role = quoteIdentifier(maker as string);
        await client.query(
          `ALTER DEFAULT PRIVILEGES FOR ROLE ${role} IN SCHEMA ${schema} GRANT SELECT ON TABLES TO vitrina_reader`,
        );
      }
    }
    return rows.map(({ name }) => name as string);
  });
}

async function asAdmin<T>(adminUrl: string, what: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect({ url: adminUrl, applicationName: "vitrina migrate" });
  try {
    return await work(client);
  } catch (error) {
    throw databaseError(error, what);
  } finally {
    await client.end();
  }
}
