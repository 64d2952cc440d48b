import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench, WITH_TASKS } from "../support/pipelines.ts";
import { until } from "../support/until.ts";
import { hasPython } from "../tasks/task-folder.ts";

/** Task plans, run by a real runner with real tasks. */

let bench: Bench;
let folder: string;

const OWN_TASKS = `
export default ({ defineTask, z }) => [defineTask({
  name: "copy", description: "d", params: z.strictObject({}), run: (rows) => rows.map((row) => ({ ...row })) }),
defineTask({
  name: "shape", description: "Drops every third row, splits every fifth.", params: z.strictObject({}),
  run: (rows) => rows.filter((row) => row.id % 3n !== 0n)
    .flatMap((row) => row.id % 5n === 0n ? [row, { ...row, id: -row.id }] : [row]) }),
defineTask({
  name: "broken", description: "d", params: z.strictObject({}), run: () => { throw new Error("the task's own words"); } })];
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-plan-"));
  await writeFile(join(folder, "own.mjs"), OWN_TASKS);
});
afterAll(() => rm(folder, { recursive: true }));

async function open(settings: Record<string, string>): Promise<void> {
  bench = await openBench(settings);
  await bench.query(`CREATE TABLE content.film AS
    SELECT n::bigint AS id, '  The   film ' || n AS title, (n % 100)::numeric / 10 AS rating,
           '2020-01-01'::timestamptz + n * interval '1 microsecond' AS modified FROM generate_series(1, 1000) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id); CREATE INDEX ON content.film (modified, id)`);
  await bench.startRunner();
}
afterEach(() => bench.close());

const READER = "SELECT id, title, rating, modified FROM content.film";

function plan(...bodies: [string, string][]): object {
  const tasks = [["SQL", READER] as [string, string], ...bodies].map(([task_type, body], index) => ({
    order_index: index + 1,
    task_type,
    body,
  }));
  return { tasks, target_key: ["id"], batch_size: 300, max_delete_percent: 100 };
}

const INCREMENTAL = { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };

describe("the tasks of the demo", () => {
  beforeEach(() => open(WITH_TASKS));

  it.runIf(hasPython)("R2.4 run one after the other, TypeScript and Python, and may add columns", async () => {
    const pipeline = await bench.create(
      plan(["TYPESCRIPT", "normalise_title"], ["PYTHON", 'rating_bucket {"good": 5}']),
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", data_path: "rows", rows_written: 1000 });
    expect(
      await bench.query(`SELECT id, title, title_sort, bucket FROM ${pipeline.target_table} WHERE id IN (7, 60)`),
    ).toEqual([
      { id: "7", title: "The film 7", title_sort: "film 7", bucket: "bad" },
      { id: "60", title: "The film 60", title_sort: "film 60", bucket: "good" },
    ]);
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 0, rows_unchanged: 1000 });
  });
});

describe("a task plan", () => {
  beforeEach(() => open({ TASKS_DIR: folder }));

  const expected =
    "(SELECT CASE sign WHEN 1 THEN id ELSE -id END AS id, title, rating, modified FROM content.film, (VALUES (1), (-1)) s (sign) WHERE id % 3 <> 0 AND (sign = 1 OR id % 5 = 0))";

  async function requireExpected(pipeline: Pipeline): Promise<void> {
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(expected));
  }

  it.each([["full", {}] as const, ["incremental", INCREMENTAL] as const])(
    "R2.4 may drop and split rows (%s), and the counters balance",
    async (_, mode) => {
      const pipeline = await bench.create({ ...plan(["TYPESCRIPT", "copy"], ["TYPESCRIPT", "shape"]), ...mode });
      const run = await bench.run(pipeline);
      expect(run).toMatchObject({ status: "SUCCESS", rows_read: 1000 });
      expect(run.rows_read + run.rows_added).toBe(run.rows_written + run.rows_dropped);
      await requireExpected(pipeline);
      await bench.query("UPDATE content.film SET title = 'new', modified = modified + interval '1 day' WHERE id = 5");
      expect(await bench.run(pipeline)).toMatchObject({ rows_written: 2 });
      await requireExpected(pipeline);
    },
  );

  it("R2.4 computes the checkpoint from what the reader read, not from what a task returned", async () => {
    const pipeline = await bench.create({ ...plan(["TYPESCRIPT", "shape"]), ...INCREMENTAL });
    await bench.run(pipeline);
    expect((await bench.store.state.get(pipeline.id)).watermark).toEqual({
      value: "2020-01-01 00:00:00.001+00",
      id: "1000",
    });
  });

  it("R4.3 can be paused between batches and goes on", async () => {
    await bench.query(`INSERT INTO content.film SELECT n, 't', 1, '2021-01-01'::timestamptz + n * interval '1 microsecond'
      FROM generate_series(1001, 40000) n`);
    const pipeline = await bench.create(plan(["TYPESCRIPT", "copy"]));
    await bench.store.requests.run(pipeline.id, "api");
    await until("batches are committed", async () => (await bench.store.state.get(pipeline.id)).batchNo > 2);
    await bench.store.requests.pause(pipeline.id);
    const paused = await bench.ended(pipeline);
    expect(paused.status).toBe("PAUSED");
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_read: 40_000 - paused.rows_read });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf("content.film"));
  });

  const failures: [string, [string, string], string, RegExp][] = [
    ["a task that throws", ["TYPESCRIPT", "broken"], "TASK_FAILED", /the task's own words/],
    ["an unknown task", ["TYPESCRIPT", "nothing"], "TASK_UNKNOWN", /there are .*copy/],
    ["parameters it does not take", ["TYPESCRIPT", 'copy {"x": 1}'], "TASK_PARAMS_INVALID", /x/],
  ];
  it.each(failures)("says why a run fails: %s", async (_, task, code, sentence) => {
    const pipeline = await bench.create(plan(task));
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "FAILED", error_code: code, attempt: 1 });
    expect(run.error).toMatch(sentence);
  });

  it("R2.3 is checked before anything is read", async () => {
    const pipeline = await bench.create({ ...plan(["TYPESCRIPT", "copy"]) });
    await bench.query(
      "UPDATE etl.etl_pipeline_tasks SET task_type = 'PYTHON' WHERE pipeline_id = $1 AND order_index = 1",
      [pipeline.id],
    );
    expect(await bench.run(pipeline)).toMatchObject({
      status: "FAILED",
      error_code: "TASK_PLAN_INVALID",
      rows_read: 0,
    });
  });
});
