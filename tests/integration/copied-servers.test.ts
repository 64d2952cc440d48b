import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { readQueryFacts } from "../../src/connectors/postgres/changes/query-facts.ts";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { openMetaStore } from "../../src/meta-store/postgres/index.ts";
import { parseSettings } from "../../src/settings/settings.ts";
import { recordingLog } from "../support/recording-log.ts";
import { openServerCopies, type ServerCopies, type ServerCopy } from "../support/server-copies.ts";
import { until } from "../support/until.ts";

let copies: ServerCopies;
beforeAll(async () => {
  copies = await openServerCopies(`CREATE SCHEMA content;
    CREATE TABLE content.film (id bigint PRIMARY KEY, title text, modified timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON content.film (modified, id);
    INSERT INTO content.film SELECT n, 'film ' || n, '2020-01-01' FROM generate_series(1, 3) n`);
});
afterAll(() => copies?.close());

let close: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const one of close.reverse()) await one();
  close = [];
});

interface Stand {
  readonly store: MetaStore;
  readonly warnings: () => string;
  create(config?: object): Promise<Pipeline>;
  run(pipeline: Pipeline): Promise<Run>;
}

let made = 0;

/** Everything in this process: the meta-store in one server, the target and the source `films` in others. */
async function openStand(meta: ServerCopy, target: ServerCopy, source: ServerCopy): Promise<Stand> {
  const settings = parseSettings(
    {
      META_DATABASE_URL: meta.urls.meta,
      READER_DATABASE_URL: meta.urls.reader,
      WRITER_DATABASE_URL: target.urls.writer,
      LOADER_DATABASE_URL: target.urls.loader ?? "",
      SOURCE_FILMS_URL: source.urls.reader,
      LOG_LEVEL: "silent",
    },
    process.cwd(),
  );
  const log = recordingLog();
  const runner = await startRunner(settings, settings.databaseUrls(), log);
  const store = openMetaStore({ url: meta.urls.meta, applicationName: "vitrina test", maxConnections: 4 });
  close.push(
    () => store.close(),
    () => runner.stop(),
  );
  return {
    store,
    warnings: () => JSON.stringify(log.entries),
    create(config = {}) {
      made += 1;
      return store.pipelines.create(
        newPipelineSchema.parse({
          name: `films_${made}`,
          source_connection: "films",
          source_query: "SELECT id, title, modified FROM content.film",
          target_table: `analytics.films_${made}`,
          target_key: ["id"],
          create_target: true,
          ...config,
        }),
        "test",
      );
    },
    async run({ id }) {
      await store.requests.run(id, "api");
      await until("the run has ended", async () => ["IDLE", "FAILED"].includes((await store.pipelines.get(id)).status));
      return (await store.runs.list(id, { limit: 1 })).items[0] as Run;
    },
  };
}

const countOf = async (server: ServerCopy, table: string): Promise<number> =>
  Number((await server.query(`SELECT count(*) AS n FROM ${table}`))[0]?.["n"]);

describe("a physical copy of a server is another database", () => {
  it("is told apart although identifier, name and oid are the same; and a load between copies reads its source", async () => {
    const identity =
      "SELECT system_identifier, current_database(), oid FROM pg_control_system(), pg_database WHERE datname = current_database()";
    expect(await copies.clone.query(identity)).toEqual(await copies.primary.query(identity));
    await copies.primary.query("INSERT INTO content.film SELECT n, 'new ' || n FROM generate_series(4, 22) n");
    const stand = await openStand(copies.clone, copies.clone, copies.primary);
    const pipeline = await stand.create();
    expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "stream", rows_read: 22 });
    expect(await countOf(copies.clone, pipeline.target_table)).toBe(22);
    // In one database it still stays there.
    const home = await stand.create({ source_connection: "main" });
    expect(await stand.run(home)).toMatchObject({ status: "SUCCESS", data_path: "push-down", rows_read: 3 });
  });

  it("a lagging standby as source is read itself, not the primary that it follows", async () => {
    await copies.caughtUp();
    await copies.standby.query("SELECT pg_wal_replay_pause()");
    await copies.primary.query("INSERT INTO content.film VALUES (100, 'not there yet')");
    const there = await countOf(copies.standby, "content.film");
    expect(there).toBe((await countOf(copies.primary, "content.film")) - 1);
    const stand = await openStand(copies.primary, copies.primary, copies.standby);
    const pipeline = await stand.create();
    expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "stream", rows_read: there });
    await copies.standby.query("SELECT pg_wal_replay_resume()");
  });

  it("a target on a clone of the meta-store's server keeps its checkpoint beside the data", async () => {
    const stand = await openStand(copies.primary, copies.clone, copies.primary);
    const pipeline = await stand.create({ batch_size: 5 });
    expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", attempt: 1, data_path: "stream" });
    expect(await countOf(copies.clone, pipeline.target_table)).toBe(await countOf(copies.primary, "content.film"));
    expect(
      await copies.clone.query(
        `SELECT 1 AS kept FROM analytics._vitrina_checkpoint WHERE pipeline_id = '${pipeline.id}'`,
      ),
    ).toHaveLength(1);
  });
});

const INCREMENTAL = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };

describe("rows whose transactions began on another server", () => {
  it("a query on a standby cannot be analysed for following, and the sentence says why", async () => {
    const client = new pg.Client(copies.standby.url);
    await client.connect();
    await expect(readQueryFacts(client, "SELECT id FROM content.film")).rejects.toMatchObject({
      code: "NOT_SUPPORTED",
      message: expect.stringContaining("no view can be created there. Follow its primary."),
    });
    await client.end();
  });

  it("a standby looks back from what it has replayed, not from its clock, and says so", async () => {
    const { primary, standby } = copies;
    const stand = await openStand(primary, primary, standby);
    const pipeline = await stand.create(INCREMENTAL);
    await primary.query("INSERT INTO content.film VALUES (200, 'the last that arrived')");
    await copies.caughtUp();
    await standby.query("SELECT pg_wal_replay_pause()");
    await until("replay has paused", async () => {
      const [state] = await standby.query("SELECT pg_get_wal_replay_pause_state() AS now");
      return state?.["now"] === "paused";
    });
    const [last] = await standby.query("SELECT pg_last_xact_replay_timestamp()::text AS at");
    await primary.query(
      `INSERT INTO content.film VALUES (201, 'late', '${last?.["at"]}'::timestamptz - interval '299 seconds')`,
    );
    await until("the standby lags", async () => {
      const [lag] = await standby.query(
        `SELECT (now() > '${last?.["at"]}'::timestamptz + interval '3 seconds')::text AS lags`,
      );
      return lag?.["lags"] === "true";
    });
    expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect(await primary.query(`SELECT title FROM ${pipeline.target_table} WHERE id IN (200, 201)`)).toEqual([
      { title: "the last that arrived" },
    ]);
    await standby.query("SELECT pg_wal_replay_resume()");
    await copies.caughtUp();
    expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });
    expect(await countOf(primary, `${pipeline.target_table} WHERE id = 201`)).toBe(1);
    expect(stand.warnings()).toContain("the source is a standby");
  });

  it("a subscription brings rows that were stamped long before they arrive: a look-back finds them, and says so", async () => {
    const { primary, clone } = copies;
    const table = "CREATE TABLE content.news (id bigint PRIMARY KEY, modified timestamptz NOT NULL)";
    await Promise.all([primary.query(table), clone.query(table)]);
    await primary.query("CREATE PUBLICATION news FOR TABLE content.news");
    const { hostname, port, username, password } = new URL(primary.url);
    await clone.query(`CREATE SUBSCRIPTION news CONNECTION
      'host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)} dbname=vitrina' PUBLICATION news`);
    try {
      const stand = await openStand(clone, clone, clone);
      const pipeline = await stand.create({
        ...INCREMENTAL,
        source_query: "SELECT id, modified FROM content.news",
      });
      const writer = new pg.Client({ connectionString: primary.url });
      await writer.connect();
      await writer.query(`BEGIN; INSERT INTO content.news
        SELECT n, clock_timestamp() - interval '20 seconds' FROM generate_series(1, 40) n`);
      await primary.query("INSERT INTO content.news VALUES (41, now())");
      const arrived = (n: number) =>
        until(`${n} rows have arrived`, async () => (await countOf(clone, "content.news")) === n);
      await arrived(1);
      expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 1 });
      await writer.query("COMMIT");
      await writer.end();
      await arrived(41);
      expect(await stand.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 40 });
      expect(stand.warnings()).toContain("a subscription");
    } finally {
      await clone.query("DROP SUBSCRIPTION news");
    }
  });
});

it("a standby that took over has a history of its own: everything is read again", async () => {
  const { primary, standby } = copies;
  await primary.query("INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1001, 1100) n");
  await copies.caughtUp();
  await standby.query("ALTER SYSTEM SET primary_conninfo = ''");
  await standby.query("SELECT pg_reload_conf()");
  await until(
    "the standby hears nothing more",
    async () => (await standby.query("SELECT FROM pg_stat_wal_receiver")).length === 0,
  );
  await primary.query("INSERT INTO content.film SELECT n, 'lost ' || n FROM generate_series(1101, 1150) n");
  const before = await openStand(primary, primary, primary);
  const pipeline = await before.create({ mode: "incremental", incremental_key: "id" });
  expect(await before.run(pipeline)).toMatchObject({ status: "SUCCESS", notes: [] });
  for (const one of close.splice(0).reverse()) await one();

  await standby.query("SELECT pg_promote()");
  // The same numbers once more, and as many transactions as the primary has had.
  await standby.query("INSERT INTO content.film SELECT n, 'again ' || n FROM generate_series(1101, 1200) n");
  for (let n = 0; n < 100; n++) await standby.query("SELECT pg_current_xact_id()");
  const after = await openStand(primary, primary, standby);
  const run = await after.run(pipeline);
  expect(run).toMatchObject({ status: "SUCCESS" });
  expect(run.notes).toEqual([expect.stringMatching(/a standby took its place: everything is read again/)]);
  expect(await countOf(primary, `${pipeline.target_table} WHERE title LIKE 'again %'`)).toBe(100);
});
