import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { CINEMA, FILMS, reasonOf } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { makeFolder } from "../tasks/task-folder.ts";

/** Code tasks between a source that is followed and its mart. */

const TASKS = `
export default ({ defineTask, z }) => [
  defineTask({ name: "loud", description: "d", params: z.strictObject({}),
    run: (rows) => rows.filter(({ title }) => title !== "secret").map((row) => ({ ...row, title: row.title.toUpperCase() })) }),
  defineTask({ name: "split", description: "d", params: z.strictObject({}),
    run: (rows) => rows.flatMap((row) => (row.title.includes("+") ? [row, { ...row, film_id: -row.film_id }] : [row])) }),
  defineTask({ name: "keyed", description: "d", params: z.strictObject({}), columns: () => [{ name: "made", type: "bigint" }, { name: "title", type: "text" }],
    run: (rows) => rows.map(({ film_id, title }) => ({ made: film_id * 2n, title })) }),
];`;

let bench: Bench;
beforeAll(async () => {
  bench = await openBench({ TASKS_DIR: await makeFolder({ "tasks.mjs": TASKS }) });
  await bench.query(CINEMA);
  await bench.startRunner();
});
afterAll(() => bench.close());

const create = (task: string, more: object = {}): Promise<Pipeline> =>
  bench.create({
    tasks: [
      { order_index: 1, task_type: "SQL", body: FILMS },
      { order_index: 2, task_type: "TYPESCRIPT", body: task },
    ],
    target_key: ["film_id"],
    mode: "follow",
    follow: { check_every_seconds: 3600 },
    ...more,
  });

const titles = (pipeline: Pipeline, ...ids: number[]) =>
  bench.query(`SELECT film_id::int, title FROM ${pipeline.target_table} WHERE film_id = ANY ($1) ORDER BY 1`, [ids]);

describe("a code task in follow mode", () => {
  it("may change rows, and drop them, which deletes them from the mart", async () => {
    const films = await create("loud");
    await bench.run(films);
    await bench.query(
      "UPDATE content.film SET title = 'new' WHERE id = 1; UPDATE content.film SET title = 'secret' WHERE id = 2",
    );
    const run = await bench.run(films);
    expect(run).toMatchObject({ status: "SUCCESS", strategy: "follow", data_path: "rows" });
    expect(run).toMatchObject({ rows_read: 2, rows_written: 1, rows_dropped: 1, rows_deleted: 1 });
    expect(reasonOf(run)).toBeUndefined();
    expect(await titles(films, 1, 2, 3)).toEqual([
      { film_id: 1, title: "NEW" },
      { film_id: 3, title: "FILM 3" },
    ]);
  });

  it("fails the run when it gives a row another key, in a round and in a comparison", async () => {
    const films = await create("split");
    expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", rows_written: 200 });
    await bench.query("UPDATE content.film SET title = 'a + b' WHERE id = 5");
    expect(await bench.run(films)).toMatchObject({
      status: "FAILED",
      error_code: "KEY_CHANGED_BY_TASK",
      rows_written: 0,
    });
    await bench.store.state.reset(films.id);
    expect(await bench.run(films)).toMatchObject({ status: "FAILED", error_code: "KEY_CHANGED_BY_TASK" });
    expect(await titles(films, 5, -5)).toEqual([{ film_id: 5, title: "film 5" }]);
  });

  it("is refused when it makes the key", async () => {
    const films = await create("keyed", { target_key: ["made"] });
    expect(await bench.run(films)).toMatchObject({
      status: "FAILED",
      error_code: "FOLLOW_REFUSED",
      error: expect.stringContaining('The column "made" of the key is made by a code task'),
    });
  });
});
