import { afterEach, expect, inject, it } from "vitest";
import { newPipelineSchema } from "../../src/domain/pipeline.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

let database: TestDatabase;
let runners: VitrinaProcess[] = [];

afterEach(async () => {
  await Promise.all(runners.map((runner) => runner.stop()));
  await database.drop();
});

const PIPELINES = 20;
const ROUNDS = LONG ? 10 : 2;
const REQUESTS = PIPELINES * ROUNDS;

it(`R4.2 two runner processes execute each of ${REQUESTS} run requests exactly once`, async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  await database.query(`CREATE SCHEMA content; CREATE TABLE content.film AS SELECT 1 AS id, 'a' AS title;
    GRANT USAGE ON SCHEMA content TO vitrina_reader; GRANT SELECT ON content.film TO vitrina_reader`);
  const store = database.openStore();
  const pipelines = await Promise.all(
    Array.from({ length: PIPELINES }, (_, n) =>
      store.pipelines.create(
        newPipelineSchema.parse({
          name: `p${n}`,
          source_query: "SELECT id, title FROM content.film",
          target_table: `analytics.t${n}`,
          target_key: ["id"],
          create_target: true,
        }),
        "test",
      ),
    ),
  );
  runners = [1, 2].map(() =>
    spawnVitrina(["runner"], { env: { ...roleEnvironment(database.urls), RUNNER_CONCURRENCY: "6" } }),
  );
  await Promise.all(runners.map((runner) => runner.untilPrinted("runner started")));

  const idle = async (): Promise<string[]> =>
    (await database.query("SELECT id FROM etl.etl_pipelines WHERE status = 'IDLE'")).map(({ id }) => id as string);
  const requested = new Map(pipelines.map(({ id }) => [id as string, 0]));
  await until("every request was made and executed", async () => {
    const ready = await idle();
    const more = ready.filter((id) => (requested.get(id) as number) < ROUNDS);
    for (const id of more) requested.set(id, (requested.get(id) as number) + 1);
    await Promise.all(more.map((id) => store.requests.run(id as never, "api")));
    return more.length === 0 && ready.length === PIPELINES;
  });

  const counts = await database.query(
    `SELECT count(*)::int AS runs, count(*) FILTER (WHERE status = 'SUCCESS')::int AS good,
            count(DISTINCT (pipeline_id, lease_epoch))::int AS claims, count(DISTINCT runner_id)::int AS runners,
            sum(rows_read)::int AS rows_read, sum(rows_written)::int AS rows_written
       FROM etl.etl_runs`,
  );
  const each = { runs: REQUESTS, good: REQUESTS, claims: REQUESTS, rows_read: REQUESTS };
  expect(counts).toEqual([{ ...each, runners: 2, rows_written: PIPELINES }]);
});
