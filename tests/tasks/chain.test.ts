import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { openChain } from "../../src/tasks/open-chain.ts";
import { columnsOf, hasPython, makeHost, neverAborted, type TestHost } from "./task-folder.ts";

const COLUMNS = columnsOf({ id: "bigint", title: "text", rating: "numeric(3,1)" });

describe("the transforms of a plan", () => {
  let host: TestHost;
  beforeAll(async () => {
    host = makeHost(fileURLToPath(new URL("../../examples/cinema/tasks", import.meta.url)));
    await host.load();
  });

  it.skipIf(!hasPython)("R2.4 each is given what the one before it returned, in both languages", async () => {
    const steps = [
      { language: "TYPESCRIPT", name: "normalise_title", params: {} },
      { language: "PYTHON", name: "rating_bucket", params: { good: 8 } },
      { language: "TYPESCRIPT", name: "normalise_title", params: { column: "bucket" } },
    ] as const;
    const chain = await openChain(host, steps, COLUMNS);
    expect(chain.columns.map(({ name }) => name)).toEqual(["id", "title", "rating", "title_sort", "bucket"]);
    const rows = [
      ["9007199254740993", " The  Ёлки 😀", "8.0"],
      ["2", "A", null],
    ];
    expect(await chain.apply(rows, neverAborted)).toEqual([
      ["9007199254740993", "The Ёлки 😀", "8.0", "good", "good"],
      ["2", "A", null, "unrated", "unrated"],
    ]);
    await chain.close();
  });

  it("R2.4 without transforms, rows pass as they are", async () => {
    const chain = await openChain(host, [], COLUMNS);
    const rows = [["1", "a", null]];
    expect(chain.columns).toBe(COLUMNS);
    expect(await chain.apply(rows, neverAborted)).toBe(rows);
    await chain.close();
  });

  it("R2.4 one that cannot be opened keeps the others from being opened", async () => {
    const steps = [
      { language: "TYPESCRIPT", name: "normalise_title", params: {} },
      { language: "TYPESCRIPT", name: "../normalise_title", params: {} },
    ] as const;
    await expect(openChain(host, steps, COLUMNS)).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
  });
});
