import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";
import type { Registry } from "../../src/connectors/registry.ts";
import { prepareDatabase } from "../../src/main/database.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { openMetaStore } from "../../src/meta-store/postgres/index.ts";
import { type DatabaseUrls, parseSettings, type Settings } from "../../src/settings/settings.ts";
import { until } from "./until.ts";

const TEMPLATE = "vitrina_template";
const CINEMA_TEMPLATE = "vitrina_cinema_template";

/** Migrating and generating data once, then copying, keeps a test's own database cheap. */
export async function createTemplate(serverUrl: string): Promise<void> {
  const admin = await open(serverUrl);
  await admin.query(`CREATE DATABASE ${TEMPLATE}`);
  const url = withDatabase(serverUrl, TEMPLATE);
  await prepareDatabase(testSettings(url), url);
  await admin.query(`CREATE DATABASE ${CINEMA_TEMPLATE} TEMPLATE ${TEMPLATE}`);
  const cinemaUrl = withDatabase(serverUrl, CINEMA_TEMPLATE);
  const cinema = await open(cinemaUrl);
  for (const file of ["schema.sql", "data.sql"]) {
    await cinema.query(await readFile(new URL(`../../examples/cinema/${file}`, import.meta.url), "utf8"));
  }
  await cinema.end();
  await prepareDatabase(testSettings(cinemaUrl), cinemaUrl);
  await admin.end();
}

/** Where a runner finds Python. */
const searchPath = process.env["PATH"] === undefined ? {} : { PATH: process.env["PATH"] };

function testSettings(databaseUrl: string, more: Record<string, string> = {}, registry?: Registry): Settings {
  return parseSettings(
    { DATABASE_URL: databaseUrl, API_PORT: "0", LOG_LEVEL: "silent", ...searchPath, ...more },
    process.cwd(),
    registry,
  );
}

export interface TestDatabase {
  readonly url: string;
  readonly urls: DatabaseUrls;
  readonly settings: Settings;
  /** As the administrator; for looking and for preparing sources. */
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** All pipelines go, with everything that is kept of them. */
  forgetPipelines(): Promise<void>;
  openStore(): MetaStore;
  drop(): Promise<void>;
}

interface TestDatabaseOptions {
  readonly cinema?: boolean;
  readonly settings?: Record<string, string>;
  /** Instead of the connectors that there are. */
  readonly registry?: Registry | undefined;
  /** Without Vitrina's schema. */
  readonly empty?: boolean;
  /** A copy of that database as it is now; sessions connected to it are ended. */
  readonly copyOf?: TestDatabase;
}

export async function createTestDatabase(serverUrl: string, options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  const server = await open(serverUrl);
  // Copied as files: the server's default, through the WAL, costs ten times as much.
  await server.query(`CREATE DATABASE ${name} TEMPLATE ${await templateFor(options, server)} STRATEGY FILE_COPY`);
  const url = withDatabase(serverUrl, name);
  const settings = testSettings(url, options.settings, options.registry);
  const urls = settings.databaseUrls();
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on("error", () => undefined);
  const stores: MetaStore[] = [];
  return {
    url,
    urls,
    settings,
    query: async (text, values) => (await pool.query(text, values)).rows,
    async forgetPipelines() {
      await until("nobody reads them in another order", () => truncatePipelines(pool));
    },
    openStore() {
      const store = openMetaStore({ url: urls.meta, applicationName: "vitrina test", maxConnections: 10 });
      stores.push(store);
      return store;
    },
    async drop() {
      await Promise.all(stores.map((store) => store.close()));
      await pool.end();
      await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await server.end();
    },
  };
}

/** False after a deadlock with somebody who is reading the tables. */
async function truncatePipelines(pool: pg.Pool): Promise<boolean> {
  try {
    await pool.query("TRUNCATE etl.etl_pipelines CASCADE");
    return true;
  } catch (error) {
    if ((error as pg.DatabaseError).code === "40P01") return false;
    throw error;
  }
}

async function templateFor({ empty, cinema, copyOf }: TestDatabaseOptions, server: pg.Client): Promise<string> {
  if (copyOf === undefined) return empty ? "template0" : cinema ? CINEMA_TEMPLATE : TEMPLATE;
  const original = new URL(copyOf.url).pathname.slice(1);
  await server.query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", [original]);
  return original;
}

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

function withDatabase(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}
