import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CopyTextReader, decodeCopyText, encodeCopyText } from "../../src/postgres/copy-text.ts";
import { type Bench, openBench, WITH_TASKS } from "../support/pipelines.ts";
import { roleEnvironment, spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

/** A batch is bounded by its bytes as well as by its rows. */

const MIB = 1 << 20;

describe("a batch of COPY text", () => {
  const ROWS = Array.from({ length: 40 }, (_, n) => [
    String(n),
    "x".repeat((n * 37) % 101),
    n % 3 === 0 ? null : "a\nb",
  ]);
  const bytes = Buffer.concat(encodeCopyText(ROWS));

  it.each([1, 2, 7, 64, 1000])("ends with a whole row, whatever the pieces of %s bytes it comes in", async (size) => {
    for (const [limit, byteLimit] of [
      [40, 1],
      [40, 100],
      [3, 100],
      [40, 100_000],
      [7, 1_000_000],
    ] as const) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      const reader = new CopyTextReader(Readable.from(pieces, { objectMode: false }));
      const read: unknown[] = [];
      for (;;) {
        const { bytes: taken, count, isLast } = await reader.take(limit, byteLimit);
        const rows = decodeCopyText(taken);
        expect(rows).toHaveLength(count);
        const [last = []] = rows.slice(-1);
        const withoutLast = taken.length - Buffer.concat(encodeCopyText([last])).length;
        if (count > 0) expect(withoutLast).toBeLessThan(byteLimit);
        if (!isLast && count < limit) expect(taken.length).toBeGreaterThanOrEqual(byteLimit);
        read.push(...rows);
        if (isLast) break;
      }
      expect(read).toEqual(ROWS);
    }
  });
});

describe("a runner", () => {
  const VALUE = 400_000;
  const COUNT = 400;
  let bench: Bench;
  let runner: VitrinaProcess;

  beforeAll(async () => {
    bench = await openBench();
    // Not compressed, and never as long: what a value costs is what it says.
    await bench.query(`CREATE TABLE content.wide (id int PRIMARY KEY, title text);
      INSERT INTO content.wide SELECT n, repeat(md5(n::text), ${VALUE / 32}) FROM generate_series(1, ${COUNT}) n`);
    const env = {
      ...roleEnvironment(bench.database.urls),
      ...WITH_TASKS,
      BATCH_MIB: "4",
      NODE_OPTIONS: "--max-old-space-size=64",
    };
    runner = spawnVitrina(["runner"], { env });
    await runner.untilPrinted("runner started");
  });
  afterAll(async () => {
    await runner?.stop();
    await bench?.close();
  });

  /** What it held at most, of which a runner without work has its share. */
  async function peakMib(): Promise<number> {
    const status = await readFile(`/proc/${runner.pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  it.each([
    ["stream", []],
    ["rows", [{ order_index: 2, task_type: "TYPESCRIPT", body: "normalise_title" }]],
  ])("passes 160 MB in one batch by rows through a memory of 64 MB, by %s", async (path, tasks) => {
    const before = await peakMib();
    const pipeline = await bench.create({
      source_query: "",
      tasks: [{ order_index: 1, task_type: "SQL", body: "SELECT id, title FROM content.wide OFFSET 0" }, ...tasks],
      target_key: ["id"],
      batch_size: 100_000,
    });
    const run = await bench.run(pipeline);
    expect(run).toMatchObject({ status: "SUCCESS", rows_written: COUNT, data_path: path });
    expect(run.batches).toBeGreaterThanOrEqual((COUNT * VALUE) / (5 * MIB));
    expect((await peakMib()) - before).toBeLessThan((COUNT * VALUE) / MIB / 1.2);
  });
});
