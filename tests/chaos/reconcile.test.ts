import { describe, expect, it, type TestContext } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import type { Reconcile } from "../../src/domain/reconcile.ts";
import { type Chaos, COPY_TASK, diedAt, faulted, openChaos, type Path } from "../support/chaos.ts";
import { RECONCILE_POINTS } from "../support/chaos-kills.ts";
import { createPipeline, createSource, INCREMENTAL, OLD_TARGET, ROWS } from "../support/chaos-kinds.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";

/** Reconciles by real runner processes that are killed, stopped, or short of memory. */

async function open(path: Path, { onTestFinished }: TestContext): Promise<Chaos> {
  const chaos = await openChaos(path);
  onTestFinished(() => chaos.close());
  await createSource(chaos);
  return chaos;
}

/** Its target misses, has otherwise, or has too much: as `chaos-kinds` says. */
const FOUND = { missing: { count: 60 }, different: { count: 120 }, extra: { count: 90 } };

function ended({ store }: Chaos, { id: pipelineId }: Pipeline, { id }: Reconcile): Promise<Reconcile> {
  return until("the reconcile ends", async () => {
    const found = await store.reconciles.get(pipelineId, id);
    return ["WAITING", "RUNNING"].includes(found.status) ? undefined : found;
  });
}

describe.concurrent("a runner that is lost in the middle of a reconcile", () => {
  it.for(RECONCILE_POINTS)("R7 R4.7 at %s is replaced by another, which starts over", async (point, context) => {
    const chaos = await open("stream", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "stream", "mart");
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    await diedAt(chaos, chaos.runner(`${point}:kill`), point);
    const lost = await chaos.store.reconciles.get(pipeline.id, asked.id);
    expect(lost).toMatchObject({ status: "RUNNING", report: null });
    chaos.runner();
    const done = await ended(chaos, pipeline, asked);
    expect(done).toMatchObject({ status: "DIFFERENT", rows_compared: ROWS, report: FOUND });
    expect(done.runner_id).not.toBe(lost.runner_id);
  });

  it("R4.7 is not replaced for ever: after three losses the reconcile fails", async (context) => {
    const chaos = await open("stream", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "stream", "mart");
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    for (let n = 0; n < 3; n += 1) await diedAt(chaos, chaos.runner("reconcile_batch:1:kill"), "reconcile_batch");
    chaos.runner();
    expect(await ended(chaos, pipeline, asked)).toMatchObject({
      status: "FAILED",
      error_code: "RUNNER_LOST_REPEATEDLY",
    });
  });

  it("R7 a runner that is frozen and wakes up late reports nothing", async (context) => {
    const chaos = await open("stream", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "stream", "mart");
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    const zombie = chaos.runner("reconcile_read:1:stop");
    await faulted(zombie, "reconcile_read", "stop");
    chaos.runner();
    const done = await ended(chaos, pipeline, asked);
    zombie.signal("SIGCONT");
    await zombie.untilPrinted("run dropped");
    expect(await chaos.store.reconciles.get(pipeline.id, asked.id)).toEqual(done);
  });
});

describe.concurrent("a reconcile", () => {
  it("R7 is given back by a runner that is stopped, and another one does it", async (context) => {
    const chaos = await open("stream", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "stream", "mart");
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    const first = chaos.runner("reconcile_batch:2:delay:1500", { STOP_TIMEOUT_SECONDS: "30" });
    await faulted(first, "reconcile_batch", "delay");
    expect(await first.stop()).toBe(0);
    expect(await chaos.store.reconciles.get(pipeline.id, asked.id)).toMatchObject({ status: "WAITING", report: null });
    chaos.runner();
    expect(await ended(chaos, pipeline, asked)).toMatchObject({ status: "DIFFERENT", report: FOUND });
  });

  it("R7 compares a target in another database", async (context) => {
    const chaos = await open("elsewhere", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "elsewhere", "mart");
    chaos.runner();
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    expect(await ended(chaos, pipeline, asked)).toMatchObject({ status: "DIFFERENT", report: FOUND });
    await chaos.store.requests.run(pipeline.id, "api");
    await chaos.atRest();
    const again = await chaos.store.reconciles.request(pipeline.id, "test");
    expect(await ended(chaos, pipeline, again)).toMatchObject({ status: "MATCH" });
  });

  it("R7 looks again when a full load came in between, and takes its work for no difference", async (context) => {
    const chaos = await open("stream", context);
    const pipeline = await createPipeline(chaos, OLD_TARGET, "stream", "mart");
    await chaos.store.requests.run(pipeline.id, "api");
    // Everything is read, and nothing visible yet.
    // Its only slot for loads is taken, which does not keep the reconcile waiting.
    const runner = chaos.runner("load_read:1:park", { RUNNER_CONCURRENCY: "1" });
    await faulted(runner, "load_read", "park");
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    await until("both sides were compared once", async () => {
      const { rows_compared } = await chaos.store.reconciles.get(pipeline.id, asked.id);
      return rows_compared === ROWS;
    });
    runner.signal("SIGUSR2");
    const done = await ended(chaos, pipeline, asked);
    expect(done).toMatchObject({ status: "MATCH", report: { passes: 2 } });
  });

  it("R7 R10 of many rows needs no more memory than of few, also through a code task", async (context) => {
    const rows = LONG ? 200_000 : 20_000;
    const chaos = await open("rows", context);
    await chaos.query(`CREATE TABLE content.many AS
      SELECT n AS id, repeat(md5(n::text), 8) AS text FROM generate_series(1, ${rows}) n;
      CREATE TABLE analytics.many AS SELECT id, 'other' AS text FROM content.many WHERE id % 2 = 0;
      ALTER TABLE analytics.many ADD PRIMARY KEY (id); GRANT SELECT ON analytics.many TO vitrina_writer`);
    const pipeline = await chaos.create({
      name: "many",
      target_table: "analytics.many",
      target_key: ["id"],
      tasks: [
        { order_index: 1, task_type: "SQL", body: "SELECT id, text FROM content.many" },
        { order_index: 2, task_type: "TYPESCRIPT", body: COPY_TASK },
      ],
    });
    const asked = await chaos.store.reconciles.request(pipeline.id, "test");
    // With TEST_LONG the rows alone are 51 MB of text, twice that as strings.
    chaos.runner(undefined, { NODE_OPTIONS: "--max-old-space-size=64" });
    expect(await ended(chaos, pipeline, asked)).toMatchObject({
      status: "DIFFERENT",
      rows_compared: rows,
      report: { missing: { count: rows / 2 }, different: { count: rows / 2 }, extra: { count: 0 } },
    });
  });
});

it("R7 takes no row for different that changes, and is loaded, after the source was read", async (context) => {
  const chaos = await open("stream", context);
  const pipeline = await createPipeline(chaos, INCREMENTAL, "stream", "mart");
  const runner = chaos.runner("reconcile_read:1:park");
  const load = async (): Promise<void> => {
    await chaos.store.requests.run(pipeline.id, "api");
    await chaos.atRest();
  };
  await load();
  const asked = await chaos.store.reconciles.request(pipeline.id, "test");
  await faulted(runner, "reconcile_read", "park");
  await chaos.query("UPDATE content.film SET title = 'changed', modified = now() WHERE id <= 20");
  await chaos.query("INSERT INTO content.film VALUES (100001, 'new', 'new', now())");
  await load();
  const changed = "SELECT count(*)::int AS n FROM analytics.mart WHERE title IN ('changed', 'new')";
  expect(await chaos.query(changed)).toEqual([{ n: 11 }]);
  runner.signal("SIGUSR2");
  expect(await ended(chaos, pipeline, asked)).toMatchObject({ status: "MATCH", report: { source: { rows: ROWS } } });
});

it("R7 an incremental pipeline that runs under a load of changes matches at any moment", async (context) => {
  const chaos = await open("stream", context);
  const pipeline = await createPipeline(chaos, INCREMENTAL, "stream", "mart");
  chaos.runner();
  const once = async (): Promise<void> => {
    await chaos.store.requests.run(pipeline.id, "api");
    await chaos.atRest();
  };
  await once();
  let isOver = false;
  let changes = 0;
  /** Two of them never touch the same rows, so they never wait for each other. */
  const change = async (half: number): Promise<void> => {
    while (!isOver) {
      const id = 2 * (1 + (changes % ROWS));
      await chaos.query(
        `UPDATE content.film SET title = title || '!', modified = clock_timestamp() WHERE id BETWEEN $1 AND $1 + 40 AND id % 4 = $2`,
        [id, 2 * half],
      );
      await chaos.query(
        "INSERT INTO content.film VALUES ($1::bigint, md5($1::bigint::text), 'new', clock_timestamp()) ON CONFLICT DO NOTHING",
        [100_000 + changes],
      );
      changes += 1;
    }
  };
  const run = async (): Promise<void> => {
    while (!isOver) await once();
  };
  const background = Promise.all([change(0), change(1), run()]);
  const seen: Reconcile[] = [];
  for (let n = 0; n < (LONG ? 8 : 3); n += 1) {
    seen.push(await ended(chaos, pipeline, await chaos.store.reconciles.request(pipeline.id, "test")));
  }
  isOver = true;
  await background;
  expect(seen.map(({ status }) => status)).toEqual(seen.map(() => "MATCH"));
  // It did change, and the target did follow.
  expect(changes).toBeGreaterThan(20);
  expect((await chaos.store.runs.list(pipeline.id, { limit: 50 })).items.length).toBeGreaterThan(3);
  expect(Math.max(...seen.map(({ report }) => report?.pending.count ?? 0))).toBeGreaterThan(0);
});
