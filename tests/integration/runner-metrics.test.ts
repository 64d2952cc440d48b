import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startRunner } from "../../src/main/runner.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { recordingLog } from "../support/recording-log.ts";
import { parseScrape, type Scrape } from "../support/scrape.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** The ends of runs that tests/e2e/metrics.test.ts does not come by. */

let bench: Bench;
let registry: Registry;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  bench = await openBench({ LEASE_SECONDS: "3", RETRY_BACKOFF_SECONDS: "0", RUNNER_POLL_SECONDS: "1" });
  await bench.query("CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 20000) n");
  registry = new Registry();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await bench.close();
});

/** Only the statement that ends a run has it. */
const FINISH = "failure_may_pass = coalesce(";

const MANY_BATCHES = { source_query: "SELECT id FROM content.film", target_key: ["id"], batch_size: 50 };

async function start(urls = bench.database.urls, log = recordingLog()): Promise<() => Promise<void>> {
  const runner = await startRunner(bench.database.settings, urls, log, registry);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= runner.stop();
    return stopped;
  };
  closing.push(stop);
  return stop;
}

const look = async (): Promise<Scrape> => parseScrape(await registry.metrics());
const results = async (): Promise<number[]> => {
  const shown = await look();
  return ["success", "failed", "paused", "handed_back", "cancelled"].map((result) =>
    shown.value("vitrina_runs_total", { result }),
  );
};

it("R9 tells a pause from a run that was handed back, and counts the batches before", async () => {
  const stop = await start();
  const pipeline = await bench.create(MANY_BATCHES);
  const begun = () =>
    until("a batch is committed", async () => {
      const [run] = (await bench.store.runs.list(pipeline.id, { limit: 1 })).items;
      return run?.status === "RUNNING" && run.batches > 0;
    });
  await bench.store.requests.run(pipeline.id, "api");
  await begun();
  expect((await look()).value("vitrina_runner_slots_used")).toBe(1);
  await bench.store.requests.pause(pipeline.id);
  await bench.ended(pipeline);
  await until("the pause is counted", async () => (await results())[2] === 1);

  await bench.store.requests.run(pipeline.id, "api");
  await begun();
  await stop();
  expect(await results()).toEqual([0, 0, 1, 1, 0]);
  const [sums] = await bench.query(
    "SELECT sum(rows_read)::int AS read, sum(batches)::int AS batches FROM etl.etl_runs",
  );
  const shown = await look();
  expect(shown.value("vitrina_rows_read_total")).toBe(sums?.["read"]);
  expect(shown.value("vitrina_batch_duration_seconds_count", { stage: "write" })).toBe(sums?.["batches"]);
  expect(shown.value("vitrina_runner_slots_used")).toBe(0);
});

it("R9 counts every attempt of a run that is tried again", async () => {
  const source = await startTcpProxy(bench.database.urls.reader);
  closing.push(() => source.close());
  // Only the first attempt is disturbed.
  source.on({ direction: "to server", bytes: "content.film", nth: 1, after: [] }, "cut");
  await start({ ...bench.database.urls, reader: source.through(bench.database.urls.reader), loader: undefined });
  const pipeline = await bench.create({ ...MANY_BATCHES, batch_size: 5000 });
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", attempt: 2 });
  await until("the success is counted", async () => (await results())[0] === 1);
  expect(await results()).toEqual([1, 1, 0, 0, 0]);
  const shown = await look();
  expect(shown.value("vitrina_run_failures_total", { code: "DATABASE_UNAVAILABLE" })).toBe(1);
  expect(shown.value("vitrina_run_duration_seconds_count", { result: "failed" })).toBe(1);
});

it("R9 counts a run that is left to recovery, because nobody could be told how it ended", async () => {
  const meta = await startTcpProxy(bench.database.urls.meta);
  const log = recordingLog();
  await start({ ...bench.database.urls, meta: meta.through(bench.database.urls.meta) }, log);
  closing.push(() => meta.close());
  meta.on({ direction: "to server", bytes: FINISH, nth: 1, after: [] }, "cut");
  const pipeline = await bench.create({ ...MANY_BATCHES, batch_size: 5000 });
  await bench.store.requests.run(pipeline.id, "api");
  await until("the run is left", () => log.has("run left to recovery"));
  expect((await look()).value("vitrina_runs_abandoned_total")).toBe(1);
  // Its lease runs out, and the same runner takes it back.
  expect(await bench.ended(pipeline)).toMatchObject({ status: "SUCCESS", trigger: "recovery" });
  await until("the success is counted", async () => (await results())[0] === 1);
  expect(await results()).toEqual([1, 1, 0, 0, 0]);
  expect((await look()).value("vitrina_run_failures_total", { code: "RUNNER_LOST" })).toBe(1);
  expect((await look()).value("vitrina_lease_losses_total")).toBe(0);
});

it("R9 counts runs of each kind, and slots of each lane, apart", async () => {
  await start();
  const pipeline = await bench.create({ ...MANY_BATCHES, batch_size: 5000 });
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
  await bench.store.reconciles.request(pipeline.id, "test");
  const ended = { kind: "reconcile", result: "success" };
  await until("the reconcile is counted", async () => (await look()).value("vitrina_runs_total", ended) === 1);
  const shown = await look();
  expect(shown.value("vitrina_runs_total", { kind: "load", result: "success" })).toBe(1);
  expect(shown.value("vitrina_run_duration_seconds_count", ended)).toBe(1);
  expect(shown.value("vitrina_runner_slots", { lane: "read" })).toBe(1);
  // What was compared is not what was loaded.
  const [load] = (await bench.store.runs.list(pipeline.id, { limit: 1 }, { kind: "load" })).items;
  expect(shown.value("vitrina_rows_read_total")).toBe(load?.rows_read);
});
