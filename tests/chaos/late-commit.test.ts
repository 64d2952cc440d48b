import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, openChaos, printed } from "../support/chaos.ts";
import { type Random, seededRandom } from "../support/chaos-random.ts";
import { until } from "../support/until.ts";

const WRITERS = 12;
const ROWS_PER_WRITER = 40;
const RUNS = 8;
const STEPS = 4;
const LONGEST_PAUSE_MS = 250;

let chaos: Chaos;
const writers: pg.Client[] = [];
afterEach(async () => {
  await Promise.all(writers.splice(0).map((writer) => writer.end()));
  await chaos?.close();
});

it("R5.2 loses no row that a long transaction commits after the cursor has passed its place", async () => {
  const random = seededRandom();
  chaos = await openChaos("push-down");
  await createTables();
  const pipelines = await Promise.all(LOADS.map(({ config }) => chaos.create({ ...COMMON, ...config })));
  const runner = chaos.runner(undefined, { RUNNER_CONCURRENCY: "4" });
  await printed(runner, /runner started/);

  let readers = pipelines.length;
  const reading = pipelines.map(async (pipeline) => {
    for (let runs = 0; runs < RUNS; runs += 1) await run(pipeline);
    readers -= 1;
  });
  const writing = Array.from({ length: WRITERS }, (_, n) => write(random, n, () => readers === 0));
  await Promise.all([...writing, ...reading]);
  for (const pipeline of pipelines) await run(pipeline);

  for (const [n, { id, name, source_query, target_table }] of pipelines.entries()) {
    const runs = await chaos.query("SELECT data_path, status FROM etl.etl_runs WHERE pipeline_id = $1", [id]);
    // A run may choose another path when the statistics say so; the one that is meant was met.
    expect(runs.map(({ data_path }) => data_path)).toContain(LOADS[n]?.path);
    expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(["SUCCESS"]));
    const lost = await chaos.query(`SELECT * FROM (${source_query}) q EXCEPT ALL SELECT * FROM ${target_table}`);
    const extra = await chaos.query(`SELECT * FROM ${target_table} EXCEPT ALL SELECT * FROM (${source_query}) q`);
    expect({ name, lost, extra }).toEqual({ name, lost: [], extra: [] });
  }
});

const COMMON = { mode: "incremental", target_key: ["id"], create_target: true, batch_size: 50 };
const BY_TIME = { incremental_key: "modified", incremental_id_key: "id" };

const LOADS: readonly { path: string; config: object }[] = [
  {
    path: "push-down",
    config: {
      ...BY_TIME,
      name: "by_time_inside",
      target_table: "analytics.by_time_inside",
      source_query: "SELECT id, version, modified FROM content.film",
    },
  },
  {
    path: "stream",
    config: {
      ...BY_TIME,
      name: "by_time_outside",
      target_table: "analytics.by_time_outside",
      // Cannot be entered at a position, so it is read as a whole.
      source_query: "SELECT id, max(version) AS version, max(modified) AS modified FROM content.film GROUP BY id",
    },
  },
  {
    path: "push-down",
    config: {
      incremental_key: "id",
      name: "by_number",
      target_table: "analytics.by_number",
      source_query: "SELECT id, writer FROM content.event",
    },
  },
];

async function createTables(): Promise<void> {
  await chaos.query(`
    CREATE TABLE content.film (id bigint PRIMARY KEY, version bigint NOT NULL, modified timestamptz NOT NULL);
    CREATE INDEX ON content.film (modified, id);
    INSERT INTO content.film
    SELECT n, 0, clock_timestamp() FROM generate_series(1, ${WRITERS * ROWS_PER_WRITER}) n;
    ANALYZE content.film;
    CREATE TABLE content.event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, writer int NOT NULL)`);
}

/** Transactions of up to a second, some with steps taken back, some given up as a whole. */
async function write(random: Random, writer: number, isOver: () => boolean): Promise<void> {
  const client = new pg.Client({ connectionString: chaos.database.url });
  writers.push(client);
  await client.connect();
  while (!isOver()) {
    await client.query("BEGIN");
    for (let step = random.below(STEPS); step >= 0; step -= 1) {
      const isSavepoint = random.chance(0.3);
      if (isSavepoint) await client.query("SAVEPOINT step");
      await client.query("UPDATE content.film SET version = version + 1, modified = clock_timestamp() WHERE id = $1", [
        1 + writer * ROWS_PER_WRITER + random.below(ROWS_PER_WRITER),
      ]);
      await client.query("INSERT INTO content.event (writer) VALUES ($1)", [writer]);
      if (isSavepoint && random.chance(0.5)) await client.query("ROLLBACK TO SAVEPOINT step");
      await delay(random.below(LONGEST_PAUSE_MS));
    }
    await client.query(random.chance(0.1) ? "ROLLBACK" : "COMMIT");
  }
}

async function run({ id }: Pipeline): Promise<void> {
  await chaos.store.requests.run(id, "api");
  await until("the run has ended", async () =>
    ["IDLE", "FAILED"].includes((await chaos.store.pipelines.get(id)).status),
  );
}
