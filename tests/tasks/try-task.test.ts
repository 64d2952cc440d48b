import { describe, expect, it } from "vitest";
import { defineTask, type TaskFactory, z } from "../../src/tasks/define-task.ts";
import { runTask } from "../../src/tasks/try-task.ts";

describe("runTask", () => {
  const votes = defineTask({
    name: "votes",
    description: "Adds votes.",
    params: z.strictObject({ more: z.bigint().default(1n) }),
    columns: [{ name: "ids", type: "bigint[]" }],
    async run(rows, { params, columns, signal }) {
      signal.throwIfAborted();
      expect(columns.map(({ name }) => name)).toEqual(["title", "votes", "rating", "ids", "tags"]);
      return rows.map((row) => ({ ...row, votes: (row["votes"] as bigint) + params.more, ids: [1n, null] }));
    },
  });

  it("R2.4 runs a task on typed rows as a pipeline would", async () => {
    const rows = [
      { title: "Ёлки", votes: 9_007_199_254_740_993n, rating: "7.50", ids: [1n], tags: { a: 1 } },
      { title: null, votes: 2n, rating: null },
    ];
    const columns = [{ name: "rating", type: "numeric(3,2)" }];
    expect(await runTask(votes, rows, { more: 2n }, { columns })).toEqual([
      { title: "Ёлки", votes: 9_007_199_254_740_995n, rating: "7.50", ids: [1n, null], tags: '{"a":1}' },
      { title: null, votes: 4n, rating: null, ids: [1n, null], tags: null },
    ]);
  });

  it("R2.4 finds what a pipeline would refuse", async () => {
    const wrong = defineTask({ name: "wrong", description: "", run: (rows) => rows.map(() => ({ title: 5 })) });
    await expect(runTask(wrong, [{ title: "a" }])).rejects.toMatchObject({ code: "TASK_RESULT_INVALID" });
    await expect(runTask(votes, [{ title: "a" }], { mroe: 1 })).rejects.toMatchObject({ code: "TASK_PARAMS_INVALID" });
    await expect(runTask(votes, [{ title: 1 }, { title: "a" }])).rejects.toMatchObject({ code: "TASK_RESULT_INVALID" });
  });

  it("R2.4 stops waiting for a task that hangs when it is told to", async () => {
    const hangs = defineTask({ name: "hangs", description: "", run: () => new Promise(() => undefined) });
    const signal = AbortSignal.timeout(20);
    await expect(runTask(hangs, [{ a: 1 }], {}, { signal })).rejects.toThrow("aborted due to timeout");
  });
});

describe("the example normalise_title", async () => {
  const example = new URL("../../examples/cinema/tasks/normalise_title.mjs", import.meta.url).href;
  const normaliseTitle: TaskFactory = (await import(example)).default;

  it("R2.4 tidies titles and adds what to sort by", async () => {
    const titles = ["  The   Matrix ", "A", "an Affair\tto Remember", "Дюна", null];
    const rows = await runTask(
      normaliseTitle,
      titles.map((title) => ({ title })),
    );
    expect(rows).toEqual([
      { title: "The Matrix", title_sort: "Matrix" },
      { title: "A", title_sort: "A" },
      { title: "an Affair to Remember", title_sort: "Affair to Remember" },
      { title: "Дюна", title_sort: "Дюна" },
      { title: null, title_sort: null },
    ]);
    expect(await runTask(normaliseTitle, [{ name: "Der Pate" }], { column: "name", articles: ["der"] })).toEqual([
      { name: "Der Pate", title_sort: "Pate" },
    ]);
  });
});
