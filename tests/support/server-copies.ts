import { execFileSync } from "node:child_process";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { prepareDatabase } from "../../src/main/database.ts";
import { type DatabaseUrls, parseSettings } from "../../src/settings/settings.ts";
import { until } from "./until.ts";

export interface ServerCopy {
  readonly url: string;
  /** The same passwords on every copy. */
  readonly urls: DatabaseUrls;
  query(text: string): Promise<Record<string, string>[]>;
}

/** One server, and two made from its files: the same identifier, database, roles and rows. */
export interface ServerCopies {
  readonly primary: ServerCopy;
  /** Follows the primary. */
  readonly standby: ServerCopy;
  /** Went its own way, as a restored disk or a promoted standby does. */
  readonly clone: ServerCopy;
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = { fsync: "off", wal_level: "logical", max_connections: "60", shared_buffers: "16MB" };

export async function openServerCopies(source: string): Promise<ServerCopies> {
  const folder = await mkdtemp(join(tmpdir(), "vitrina-copies-"));
  const running: EmbeddedPostgres[] = [];
  const pools: pg.Pool[] = [];
  const native = process.env["TEST_POSTGRES_NATIVE"];
  const start = async (name: string, more: Record<string, string> = {}): Promise<EmbeddedPostgres> => {
    const server = await startEmbeddedPostgres({
      dataDir: join(folder, name),
      ...(native && { binaries: { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") } }),
      serverSettings: { ...SETTINGS, ...more },
    });
    running.push(server);
    return server;
  };
  const copyOf = (server: EmbeddedPostgres): ServerCopy => {
    const pool = new pg.Pool({ connectionString: server.url, max: 3, types: { getTypeParser: () => String } as never });
    pool.on("error", () => undefined);
    pools.push(pool);
    const settings = parseSettings({ DATABASE_URL: server.url }, folder);
    return { url: server.url, urls: settings.databaseUrls(), query: async (text) => (await pool.query(text)).rows };
  };

  const original = await start("primary");
  await onlyOnce(original.url, source);
  await prepareDatabase(parseSettings({ DATABASE_URL: original.url }, folder), original.url);
  await original.stop();
  for (const name of ["standby", "clone"]) execFileSync("cp", ["-a", join(folder, "primary"), join(folder, name)]);
  const primary = await start("primary");
  const { hostname, port, username, password } = new URL(primary.url);
  const address = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
  const cluster = join(folder, "standby", "postgres");
  await appendFile(join(cluster, "postgresql.auto.conf"), `primary_conninfo = '${address}'\n`);
  await writeFile(join(cluster, "standby.signal"), "");
  const [standby, clone] = [copyOf(await start("standby")), copyOf(await start("clone"))];
  const first = copyOf(primary);
  return {
    primary: first,
    standby,
    clone,
    async caughtUp() {
      const [at] = await first.query("SELECT pg_current_wal_insert_lsn()::text AS lsn");
      const question = `SELECT (pg_last_wal_replay_lsn() >= '${at?.["lsn"]}')::text AS there`;
      await until("the standby has caught up", async () => (await standby.query(question))[0]?.["there"] === "true");
    },
    async close() {
      await Promise.all(pools.map((pool) => pool.end()));
      await Promise.all(running.map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function onlyOnce(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
