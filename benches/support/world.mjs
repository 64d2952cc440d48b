// A PostgreSQL of the bench's own with two databases: `bench` (meta-store, one source and the targets) and `elsewhere`
// (the same source in another database). Everything is in a temporary folder and removed afterwards.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startEmbeddedPostgres } from "../../dist/embedded-postgres/start-embedded-postgres.js";
import { openStore, prepareDatabase } from "../../dist/main/database.js";
import { parseSettings } from "../../dist/settings/settings.js";
import { createSource } from "./source-data.mjs";

export async function openWorld(rows) {
  const dataDir = await mkdtemp(join(tmpdir(), "vitrina-bench-"));
  const postgres = await startEmbeddedPostgres({ dataDir });
  const sessions = [];
  const closers = [];
  const connect = async (database) => {
    const client = new pg.Client({ connectionString: withDatabase(postgres.url, database) });
    await client.connect();
    sessions.push(client);
    return client;
  };
  const close = async () => {
    await Promise.allSettled(closers.map((closer) => closer()));
    await Promise.allSettled(sessions.map((client) => client.end()));
    await postgres.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const server = await connect("postgres");
    await server.query("CREATE DATABASE bench");
    await server.query("CREATE DATABASE elsewhere");
    const admin = await connect("bench");
    const elsewhere = await connect("elsewhere");
    const url = withDatabase(postgres.url, "bench");
    const settings = parseSettings({ DATABASE_URL: url }, dataDir);
    const { urls } = await prepareDatabase(settings, url);
    for (const client of [admin, elsewhere]) await createSource(client, rows);
    const store = openStore(urls, "bench", 2);
    sessions.push({ end: () => store.close() });
    return {
      rows,
      /** As the superuser in the database of the targets; for the references and for looking. */
      admin,
      /** As the superuser in the other source database. */
      elsewhere,
      store,
      /** As whom sources are read. */
      readerUrl: urls.reader,
      /** What the runner is given: as in production, addresses only. */
      runnerEnvironment: { DATABASE_URL: url, SOURCE_ELSEWHERE_URL: withDatabase(urls.reader, "elsewhere") },
      /** Stops what a group starts, also when the bench fails. Called even if it has already ended. */
      onClose: (closer) => void closers.push(closer),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function withDatabase(serverUrl, database) {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}
