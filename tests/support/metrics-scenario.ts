import { faulted, openChaos, printed } from "./chaos.ts";
import { createPipeline, createSource, INCREMENTAL, NEW_TARGET, OLD_TARGET } from "./chaos-kinds.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { type Scrape, scrape } from "./scrape.ts";
import { startSlotServer } from "./slot-server.ts";
import { until } from "./until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "./vitrina-process.ts";

/**
 * What an API and two runners, all real processes, show after runs of every kind: by each data path, with rejects and
 * deletions, a failure, a run that was taken over while its runner was frozen, and a source whose changes come from a slot.
 */
export interface MetricsScenario {
  readonly database: TestDatabase;
  readonly apiUrl: string;
  readonly runnerUrl: string;
  readonly api: Scrape;
  /** Of the runner that took over and did everything else. */
  readonly runner: Scrape;
  /** Of the runner that lost its lease. */
  readonly frozenRunner: Scrape;
  close(): Promise<void>;
}

export async function playMetricsScenario(): Promise<MetricsScenario> {
  const chaos = await openChaos("rows");
  const { database, query, store } = chaos;
  const shop = await openShop();
  const api = spawnVitrina(["api"], {
    env: { ...roleEnvironment(database.urls), ...shop.environment, API_PORT: "0" },
  });
  const close = async (): Promise<void> => {
    await api.stop();
    await chaos.close();
    await shop.close();
  };
  try {
    await createSource(chaos);
    await query(`CREATE TABLE content.heap AS SELECT id, title FROM content.film;
      CREATE TABLE content.going AS SELECT id FROM content.film;
      CREATE TABLE content.followed (id bigint PRIMARY KEY, title text);
      INSERT INTO content.followed SELECT n, 'film ' || n FROM generate_series(1, 10) n;
      CREATE TABLE analytics.refusing (id bigint PRIMARY KEY, title text CHECK (title NOT LIKE 'film 100%'));
      GRANT ALL ON analytics.refusing TO vitrina_writer`);
    const loader = database.urls.loader as string;
    const metrics = { ...shop.environment, METRICS_PORT: "0", LOADER_DATABASE_URL: loader };

    const taken = await createPipeline(chaos, NEW_TARGET, "rows", "taken");
    await store.requests.run(taken.id, "api");
    const frozen = chaos.runner("batch_committed:3:stop", metrics);
    await faulted(frozen, "batch_committed", "stop");
    const runner = chaos.runner(undefined, metrics);
    await chaos.atRest();
    frozen.signal("SIGCONT");
    await printed(frozen, /run dropped/);
    const frozenRunner = await scrape(await probeUrl(frozen));
    await frozen.stop();

    const heap = { source_query: "SELECT id, title FROM content.heap", target_key: ["id"], batch_size: 500 };
    const pipelines = [
      await createPipeline(chaos, NEW_TARGET, "push-down", "pushed"),
      await createPipeline(chaos, OLD_TARGET, "push-down", "compared"),
      await chaos.create({ ...INCREMENTAL.config, ...SCHEDULED, name: "changes", target_table: "analytics.changes" }),
      await chaos.create({ ...heap, name: "streamed", target_table: "analytics.streamed", create_target: true }),
      await chaos.create({ ...heap, name: "refusing", target_table: "analytics.refusing", max_rejects: 1000 }),
      await chaos.create({ ...heap, name: "failing", target_table: "analytics.no_such_table" }),
      await chaos.create({ ...FOLLOWING, name: "followed", target_table: "analytics.followed" }),
      await chaos.create({
        ...{ ...FOLLOWING, source_connection: "shop" },
        ...{ name: "by_slot", target_table: "analytics.by_slot" },
      }),
    ];
    await api.untilPrinted("api started");
    const apiUrl = /"url":"([^"]+)"/.exec(api.output())?.[1] as string;
    const scriptFor = async (connection: string) =>
      (await fetch(`${apiUrl}/sources/${connection}/follow/script`)).text();
    await query(await scriptFor("main"));
    await shop.query(await scriptFor("shop"));
    await query("UPDATE etl.etl_pipelines SET enabled = true");
    for (const { id } of pipelines) await store.requests.run(id, "api");
    await chaos.atRest();
    await fetch(`${apiUrl}/pipelines/nobody`);
    const runnerUrl = await probeUrl(runner);
    // The meta-store knows the end of a run a moment before its runner counts it.
    const isDone = async () => (await scrape(runnerUrl)).value("vitrina_runner_slots_used") === 0;
    await until("the runner has counted everything", isDone);
    // The API asks the sources in the background, and shows what they said with the next scrape.
    const knowsLag = async () =>
      (await scrape(apiUrl)).labelValues("vitrina_follow_lag_seconds", "pipeline").length === 2;
    await until("the API knows how far the marts are behind", knowsLag);
    return {
      database,
      apiUrl,
      runnerUrl,
      api: await scrape(apiUrl),
      runner: await scrape(runnerUrl),
      frozenRunner,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Switched off at first: it would start by itself, and fail, if the changes of its source are not recorded by then. */
const FOLLOWING = {
  enabled: false,
  source_query: "SELECT id, title FROM content.followed",
  target_key: ["id"],
  mode: "follow",
  create_target: true,
};

/** Another server, where a slot tells of changes. */
async function openShop() {
  const server = await startSlotServer();
  const shop = await createTestDatabase(server.url);
  await shop.query(`CREATE SCHEMA content; CREATE TABLE content.followed (id bigint PRIMARY KEY, title text);
    INSERT INTO content.followed SELECT n, 'film ' || n FROM generate_series(1, 10) n;
    GRANT USAGE ON SCHEMA content TO vitrina_reader; GRANT SELECT ON content.followed TO vitrina_reader`);
  return {
    query: shop.query,
    environment: { SOURCE_SHOP_URL: shop.urls.reader, SOURCE_SHOP_CHANGES: "slot:vitrina" },
    close: () => server.stop(),
  };
}

/** So seldom that it does not run by itself. */
const SCHEDULED = { source_query: "SELECT id, title, modified FROM content.film", schedule_interval: "30d" };

async function probeUrl(runner: VitrinaProcess): Promise<string> {
  const line = /"url":"([^"]+)","msg":"metrics are served"/;
  await runner.untilPrinted(line);
  return line.exec(runner.output())?.[1] as string;
}
