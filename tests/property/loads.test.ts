import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { FAULT_POINTS } from "../../src/observability/fault-points.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { runs } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { roleEnvironment, spawnVitrina } from "../support/vitrina-process.ts";

/** Random tables and types, batch sizes, changes, pauses and crashes: full and incremental loads, and marts that follow, end in the same target. */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench();
  await bench.startRunner();
});
afterAll(() => bench.close());

const KEY_TYPES = ["bigint", "integer", "uuid", "text", "numeric", "timestamptz", "date"] as const;

/** A value of the type for a number, so that equal numbers give equal keys. */
const keyOf = (type: (typeof KEY_TYPES)[number], n: string): string =>
  ({
    bigint: `${n}::bigint * 1000000007`,
    integer: `${n}::int`,
    uuid: `md5((${n})::text)::uuid`,
    text: `(ARRAY['a','B','ж','_',''])[1 + (${n}) % 5] || (${n})::text`,
    numeric: `(${n})::numeric / 7`,
    timestamptz: `'2024-03-31 00:59:59.999999+00'::timestamptz + (${n}) * interval '1 microsecond'`,
    date: `'0044-03-15 BC'::date + (${n})::int * 1000`,
  })[type];

const change = fc.record({
  delete: fc.integer({ min: 2, max: 9 }),
  update: fc.integer({ min: 2, max: 9 }),
  insert: fc.integer({ min: 0, max: 60 }),
  trouble: fc.oneof(
    fc.constant("none" as const),
    fc.constant("pause" as const),
    fc.record({ point: fc.constantFrom(...FAULT_POINTS), nth: fc.integer({ min: 1, max: 3 }) }),
  ),
});
type Trouble = typeof change extends fc.Arbitrary<{ trouble: infer T }> ? T : never;

const scenario = fc.record({
  keyType: fc.constantFrom(...KEY_TYPES),
  rows: fc.integer({ min: 1, max: 400 }),
  batchSize: fc.integer({ min: 1, max: 150 }),
  changes: fc.array(change, { minLength: 1, maxLength: 3 }),
});

let number = 0;

async function runScenario({
  keyType,
  rows,
  batchSize,
  changes,
}: typeof scenario extends fc.Arbitrary<infer T> ? T : never) {
  number += 1;
  const table = `content.t${number}`;
  await bench.query(`CREATE TABLE ${table} (k ${keyType} PRIMARY KEY, v text, modified timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE INDEX ON ${table} (modified, k);
    INSERT INTO ${table} (k, v) SELECT ${keyOf(keyType, "n")}, 'v' || n FROM generate_series(1, ${rows}) n`);
  const common = { source_query: `SELECT k, v, modified FROM ${table}`, target_key: ["k"], batch_size: batchSize };
  const full = await bench.create({ ...common, max_delete_percent: 100, allow_empty: true });
  const cursor = { mode: "incremental", incremental_key: "modified", incremental_id_key: "k" };
  const incremental = await bench.create({ ...common, ...cursor });
  const followed = await bench.create({
    ...common,
    mode: "follow",
    max_delete_percent: 100,
    allow_empty: true,
    follow: { check_every_seconds: 3600 },
  });
  let next = rows;
  for (const step of [undefined, ...changes]) {
    if (step !== undefined) {
      // Incremental loads do not see deletions, so rows are only deleted where the full load looks.
      await bench.query(`UPDATE ${table} SET v = v || '!', modified = clock_timestamp() WHERE abs(hashtext(k::text)) % ${step.update} = 0;
        INSERT INTO ${table} (k, v) SELECT ${keyOf(keyType, "n")}, 'new' FROM generate_series(${next + 1}, ${next + step.insert}) n`);
      next += step.insert;
    }
    for (const pipeline of [full, incremental, followed]) {
      await meet(step?.trouble ?? "none", pipeline);
      expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
      expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(table));
    }
  }
  await bench.query(`DELETE FROM ${table} WHERE abs(hashtext(k::text)) % ${changes[0]?.delete} = 0`);
  for (const pipeline of [full, followed]) {
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS" });
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(await bench.rowsOf(table));
    expect(await bench.run(pipeline)).toMatchObject({ rows_written: 0, rows_deleted: 0 });
  }
}

/** Begins a run that does not get far; afterwards the usual runner is there to go on. */
async function meet(trouble: Trouble, pipeline: Pipeline): Promise<void> {
  switch (trouble) {
    case "none":
      return;
    case "pause":
      await bench.store.requests.run(pipeline.id, "api");
      return pauseIfRunning(pipeline.id);
    default:
      await bench.stopRunner();
      await bench.store.requests.run(pipeline.id, "api");
      await dieOrEnd(`${trouble.point}:${trouble.nth}:kill`, pipeline);
      await bench.startRunner();
  }
}

/** Not every load passes every point so often; one that does not simply ends. */
async function dieOrEnd(fault: string, pipeline: Pipeline): Promise<void> {
  const env = { ...roleEnvironment(bench.database.urls), LEASE_SECONDS: "3", VITRINA_FAULT: fault };
  const victim = spawnVitrina(["runner"], { env });
  const outcome = await Promise.race([victim.exited, bench.ended(pipeline)]);
  if (typeof outcome === "object") await victim.stop();
  else expect(outcome).toBe("SIGKILL");
}

/** A pause may come too late, which is fine: then the run has simply ended. */
async function pauseIfRunning(id: Parameters<Bench["store"]["requests"]["pause"]>[0]): Promise<void> {
  await bench.store.requests.pause(id).catch(() => undefined);
  await until("nothing runs", async () => ["PAUSED", "IDLE"].includes((await bench.store.pipelines.get(id)).status));
}

it("R5 full and incremental loads and marts that follow end in the same target, whatever the types, sizes, changes, pauses and crashes", async () => {
  await fc.assert(fc.asyncProperty(scenario, runScenario), { numRuns: runs(1, 10), endOnFailure: true });
});
