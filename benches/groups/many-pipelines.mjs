// What the API and a runner ask all the time must not get slower with the number of pipelines.
import { randomUUID } from "node:crypto";
import { startRunner } from "../support/runner.mjs";

const FEW = 100;
const MANY = 10_000;
const CALLS = 200;
const LEASE_MS = 60_000;

/** Made by hand: ten thousand requests would only take time. Every pipeline has three runs. */
async function makePipelines(admin, count) {
  await admin.query("DELETE FROM etl.etl_pipelines");
  await admin.query(
    `INSERT INTO etl.etl_pipelines (name, source_query, target_table)
     SELECT 'many_' || n, 'SELECT 1 AS id', 'analytics.many_' || n FROM generate_series(1, $1::int) n`,
    [count],
  );
  await admin.query(
    `INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, config_version, runner_id, lease_epoch, started_at, finished_at)
     SELECT p.id, 1, 'SUCCESS', 'api', 1, p.id, n, now() - n * interval '1 hour', now()
       FROM etl.etl_pipelines p, generate_series(1, 3) n`,
  );
  await admin.query("VACUUM (ANALYZE) etl.etl_pipelines, etl.etl_runs");
}

/** Milliseconds per call, after a few that warm the caches. */
async function timePerCall(call) {
  for (let warm = 0; warm < 20; warm++) await call();
  const startedAt = performance.now();
  for (let done = 0; done < CALLS; done++) await call();
  return (performance.now() - startedAt) / CALLS;
}

const measure = (count) => async (world) => {
  const { admin, store } = world;
  await makePipelines(admin, count);
  const middle = await store.pipelines.get(`many_${count / 2}`);
  const page = await timePerCall(() => store.pipelines.list({ limit: 50, after: middle.name }));
  const status = await timePerCall(async () => {
    await store.pipelines.get(middle.name);
    await store.runs.list(middle.id, { limit: 1 });
  });
  const claim = await timePerCall(async () => {
    await store.requests.run(middle.id, "api");
    await store.queue.finishRun(await store.queue.claimNext(randomUUID(), LEASE_MS), { kind: "succeeded" });
  });
  return {
    [`page of ${count}`]: { ms: page },
    [`status of ${count}`]: { ms: status },
    [`claim of ${count}`]: { ms: claim },
  };
};

const gives = (count) => [`page of ${count}`, `status of ${count}`, `claim of ${count}`];

export default {
  name: "many pipelines",
  maxRounds: 3,
  async setUp({ runner }) {
    await runner.stop();
  },
  async tearDown(world) {
    await world.admin.query("DELETE FROM etl.etl_pipelines");
    world.runner = await startRunner(world);
  },
  steps: [
    { gives: gives(FEW), measure: measure(FEW) },
    { gives: gives(MANY), measure: measure(MANY) },
  ],
  ratios: [
    { name: "many-page", title: "A page of the list with 10,000 pipelines ÷ with 100" },
    { name: "many-status", title: "The status and last run of one among 10,000 pipelines ÷ among 100" },
    { name: "many-claim", title: "Request, claim and end of a run among 10,000 pipelines ÷ among 100" },
  ].map((ratio) => {
    const what = ratio.name.replace("many-", "");
    return { ...ratio, ours: `${what} of ${MANY}`, reference: `${what} of ${FEW}`, target: 1.5 };
  }),
};
