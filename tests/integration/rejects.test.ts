import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { runToPause } from "../support/batches.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

/** Rows that a target refused, and how they get into it after all. */

let bench: Bench;
let folder: string;

const TASKS = `export default ({ defineTask, z }) => [
  defineTask({ name: "copy", description: "d", params: z.strictObject({}), run: (rows) => rows.map((row) => ({ ...row })) }),
  defineTask({ name: "negate", description: "Changes the key.", params: z.strictObject({}),
    run: (rows) => rows.map((row) => ({ ...row, id: -row.id })) }),
  defineTask({ name: "make_key", description: "Makes the key.", params: z.strictObject({}),
    columns: () => [{ name: "nr", type: "bigint" }, { name: "title", type: "text" }],
    run: (rows) => rows.map(({ id, title }) => ({ nr: BigInt(id), title })) })];`;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-rejects-"));
  await writeFile(join(folder, "tasks.mjs"), TASKS);
  bench = await openBench({ TASKS_DIR: folder });
  await bench.query(`CREATE TABLE content.film AS
    SELECT n AS id, 'film ' || n AS title, '2020-01-01'::timestamptz + n * interval '1 microsecond' AS modified
      FROM generate_series(1, 1000) n;
    CREATE INDEX ON content.film (modified, id);
    UPDATE content.film SET title = 'bad ' || id WHERE id IN (7, 300, 301, 999)`);
  await bench.startRunner();
});
afterEach(async () => {
  await bench.close();
  await rm(folder, { recursive: true });
});

const QUERY = "SELECT id, title, modified FROM content.film";
const FULL = { source_query: QUERY, target_key: ["id"], batch_size: 200, create_target: false };
const INCREMENTAL = { ...FULL, mode: "incremental", incremental_key: "modified", incremental_id_key: "id" };
const withTask = (body: string): object => ({
  ...INCREMENTAL,
  source_query: "",
  tasks: [
    { order_index: 1, task_type: "SQL", body: QUERY },
    { order_index: 2, task_type: "TYPESCRIPT", body },
  ],
});

/** A pipeline whose target refuses every title that begins with "bad", after its first run. */
async function refusing(config: object, key = "id"): Promise<Pipeline> {
  const pipeline = await bench.create(config);
  await bench.query(
    `CREATE TABLE ${pipeline.target_table} (${key} bigint PRIMARY KEY, title text CHECK (title NOT LIKE 'bad%'), modified timestamptz)`,
  );
  expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 4, rows_written: 996 });
  return pipeline;
}

async function rejected({ id }: Pipeline) {
  return (await bench.store.rejects.list(id, { limit: 200 })).items;
}

const keysOf = async (pipeline: Pipeline) => (await rejected(pipeline)).map(({ key }) => key?.["id"]).reverse();

async function retry(pipeline: Pipeline, ids?: number[]) {
  expect(await bench.store.rejects.retry(pipeline.id, ids)).toBeGreaterThan(0);
  return bench.ended(pipeline);
}

const position = async ({ id }: Pipeline) => {
  const { watermark, candidate, scanPosition } = await bench.store.state.get(id);
  return { watermark, candidate, scanPosition };
};

describe("a retry of rejected rows", () => {
  it.each([
    ["without tasks", INCREMENTAL],
    ["through a code task", withTask("copy")],
  ])("reads them from the source again and writes them, %s; the watermark stays", async (_, config) => {
    const pipeline = await refusing(config);
    expect(await keysOf(pipeline)).toEqual(["7", "300", "301", "999"]);
    // Corrected without a new stamp, so no load would meet them again.
    await bench.query("UPDATE content.film SET title = 'good ' || id WHERE id IN (7, 300)");
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 0 });
    const before = await position(pipeline);
    const run = await retry(pipeline);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 2, rows_rejected: 2 });
    expect(await position(pipeline)).toEqual(before);
    expect(
      await bench.query(`SELECT id, title FROM ${pipeline.target_table} WHERE title LIKE 'good%' ORDER BY id`),
    ).toEqual([
      { id: "7", title: "good 7" },
      { id: "300", title: "good 300" },
    ]);
    // Those refused again stay, as rejects of this run.
    const left = await rejected(pipeline);
    expect(left.map(({ key, state, run_id, error_code }) => ({ id: key?.["id"], state, run_id, error_code }))).toEqual(
      ["301", "999"].map((id) => ({ id, state: "OPEN", run_id: run.id, error_code: "ROW_REFUSED" })).reverse(),
    );
    expect(await bench.run(pipeline)).toMatchObject({ rows_rejected: 0 });
  });

  it("finds them behind a code task by a key whose text is another when it is cast", async () => {
    await bench.query("ALTER TABLE content.film ADD main boolean; UPDATE content.film SET main = id % 2 = 0");
    const query = "SELECT id, main, title, modified FROM content.film";
    const pipeline = await bench.create({
      ...withTask("copy"),
      tasks: [
        { order_index: 1, task_type: "SQL", body: query },
        { order_index: 2, task_type: "TYPESCRIPT", body: "copy" },
      ],
      target_key: ["id", "main"],
    });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} (id int, main boolean, title text CHECK (title NOT LIKE 'bad%'), modified timestamptz, PRIMARY KEY (id, main))`,
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 4 });
    await bench.query("UPDATE content.film SET title = 'good ' || id WHERE id IN (7, 300)");
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 2, rows_rejected: 2 });
    expect(await keysOf(pipeline)).toEqual(["301", "999"]);
  });

  it("takes only those it is asked for, and tries each key once", async () => {
    const pipeline = await refusing(INCREMENTAL);
    await bench.query("UPDATE content.film SET title = 'good ' || id");
    const [last] = await rejected(pipeline);
    const run = await retry(pipeline, [last?.id as number]);
    expect(run).toMatchObject({ rows_read: expect.any(Number), rows_rejected: 0 });
    expect(await bench.query(`SELECT id FROM ${pipeline.target_table} WHERE id IN (7, 300, 301, 999)`)).toEqual([
      { id: "999" },
    ]);
    expect(await keysOf(pipeline)).toEqual(["7", "300", "301"]);
  });

  it("settles a row that is gone from the source, and leaves the target alone", async () => {
    const pipeline = await refusing(INCREMENTAL);
    await bench.query(`INSERT INTO ${pipeline.target_table} VALUES (7, 'older', '2019-01-01')`);
    await bench.query("DELETE FROM content.film WHERE id IN (7, 300, 301, 999)");
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 0, rows_rejected: 0 });
    expect(await rejected(pipeline)).toEqual([]);
    expect(await bench.query(`SELECT title FROM ${pipeline.target_table} WHERE id = 7`)).toEqual([{ title: "older" }]);
  });

  it("never fails a run because rows are refused again, however few rejects are allowed", async () => {
    const pipeline = await refusing(INCREMENTAL);
    await bench.query("UPDATE etl.etl_pipelines SET max_rejects = 0");
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 4 });
    expect(await keysOf(pipeline)).toEqual(["7", "300", "301", "999"]);
  });

  it("keeps what it cannot find behind a code task that changes the key, and says why", async () => {
    const pipeline = await refusing(withTask("negate"));
    await bench.query("UPDATE content.film SET title = 'good ' || id");
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS" });
    const left = await rejected(pipeline);
    expect(left.map(({ state, error_code }) => ({ state, error_code }))).toEqual(
      Array.from({ length: 4 }, () => ({ state: "OPEN", error_code: "REJECT_NOT_FOUND" })),
    );
    expect(left[0]?.error).toMatch(/Reset the state/);
  });

  it("keeps what has no key in the source, because a code task makes it, and says why", async () => {
    const pipeline = await bench.create({ ...withTask("make_key"), target_key: ["nr"] });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} (nr bigint PRIMARY KEY, title text CHECK (title NOT LIKE 'bad%'))`,
    );
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 4 });
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 0 });
    const left = await rejected(pipeline);
    expect(left).toHaveLength(4);
    expect(left[0]).toMatchObject({
      state: "OPEN",
      error_code: "REJECT_NOT_FOUND",
      error: expect.stringContaining("(nr)"),
    });
  });

  it("finds more keys than one question names", async () => {
    const pipeline = await refusing(INCREMENTAL);
    await bench.query("UPDATE content.film SET title = 'good ' || id");
    // As if the target had refused them, too.
    await bench.query(`
      DELETE FROM ${pipeline.target_table} WHERE id <= 900;
      INSERT INTO etl.etl_rejects (pipeline_id, run_id, row_key, row, error_code, error)
      SELECT r.pipeline_id, r.id, jsonb_build_object('id', n::text), '{}', 'ROW_REFUSED', 'Because.'
        FROM etl.etl_runs r, generate_series(1, 900) n`);
    expect(await retry(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 0 });
    expect(await rejected(pipeline)).toEqual([]);
    expect(await bench.query(`SELECT count(*)::int AS n FROM ${pipeline.target_table}`)).toEqual([{ n: 1000 }]);
  });
});

describe("a full load", () => {
  it("settles the rejects of the loads before it; its own stay", async () => {
    const pipeline = await refusing(FULL);
    await bench.query("UPDATE content.film SET title = 'good ' || id WHERE id IN (7, 300)");
    const run = await retry(pipeline);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: 2, rows_rejected: 2 });
    const left = await rejected(pipeline);
    expect(left.map(({ key, run_id, state }) => [key?.["id"], run_id, state])).toEqual([
      ["999", run.id, "OPEN"],
      ["301", run.id, "OPEN"],
    ]);
  });

  it("that was paused and continued keeps the rejects of both its runs", async () => {
    await bench.query(`INSERT INTO content.film SELECT n, 'film', now() FROM generate_series(1001, 6000) n;
      UPDATE content.film SET title = 'bad' WHERE id = 5999`);
    const pipeline = await bench.create({ ...FULL, batch_size: 500 });
    await bench.query(
      `CREATE TABLE ${pipeline.target_table} (id int PRIMARY KEY, title text CHECK (title NOT LIKE 'bad%'), modified timestamptz)`,
    );
    expect(await runToPause(bench, pipeline)).toMatchObject({ rows_rejected: 4 });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_rejected: 1 });
    expect(await keysOf(pipeline)).toEqual(["7", "300", "301", "999", "5999"]);
  });

  it("that fails leaves them as they are", async () => {
    const pipeline = await refusing(FULL);
    await bench.query("UPDATE content.film SET title = 'good' WHERE id = 7; DELETE FROM content.film WHERE id > 100");
    expect(await retry(pipeline)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_DELETIONS" });
    expect((await rejected(pipeline)).filter(({ state }) => state === "RETRY_REQUESTED")).toHaveLength(4);
  });
});
