import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSearchBench, type SearchBench } from "../support/search-bench.ts";

let bench: SearchBench;
beforeEach(async () => {
  bench = await openSearchBench();
  await bench.startRunner();
});
afterEach(() => bench.close());

async function films(count: number, more: object = {}) {
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, ${count}) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
  return bench.createIndex({
    source_query: "SELECT id, title FROM content.film",
    target_key: ["id"],
    batch_size: 100,
    ...more,
  });
}

describe("a full load", () => {
  it("R1.3 creates the index and loads every row", async () => {
    const pipeline = await films(1000);
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({
      status: "SUCCESS",
      rows_read: 1000,
      rows_written: 1000,
      data_path: "rows",
      strategy: "new index",
    });
    expect(await bench.search.count(pipeline.index)).toBe(1000);
  });
});
