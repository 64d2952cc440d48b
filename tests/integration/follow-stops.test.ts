import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { runToPause } from "../support/batches.ts";
import { CINEMA, FILM_MART, reasonOf, violations } from "../support/followed-marts.ts";
import { holdLock } from "../support/hold-lock.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/**
 * A round that is stopped between two chunks: its position stays, and the next run does the round again. A comparison of
 * everything continues after its last batch.
 */

let bench: Bench;
beforeAll(async () => {
  bench = await openBench({ STOP_TIMEOUT_SECONDS: "60" });
  await bench.query(CINEMA);
  await bench.startRunner();
});
afterAll(() => bench.close());

/** One of its chunks, but not the last, waits for a lock on a row of the mart. */
async function stuckInRound(word: string): Promise<{ films: Pipeline; free(): Promise<void> }> {
  // Five keys in a chunk.
  const films = await bench.create({ ...FILM_MART, batch_size: 1, follow: { check_every_seconds: 3600 } });
  await bench.run(films);
  const free = await holdLock(
    bench.database.url,
    `SELECT FROM ${films.target_table} WHERE film_id % 10 = 1 FOR UPDATE`,
  );
  await bench.query(`UPDATE content.film SET title = '${word}' WHERE id <= 30`);
  await bench.store.requests.run(films.id, "api");
  await until("the round waits for the lock", async () => {
    const waiting = await bench.query(
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    );
    return waiting.length > 0 ? true : undefined;
  });
  return { films, free };
}

const shown = (title: string): string =>
  `CREATE OR REPLACE VIEW content.shown AS SELECT id AS film_id, ${title} AS title FROM content.film`;

/** It has compared some batches. */
async function pausedInComparison(): Promise<Pipeline> {
  await bench.query(shown("title"));
  const source_query = "SELECT film_id, title FROM content.shown";
  const follow = { check_every_seconds: 3600 };
  const films = await bench.create({ ...FILM_MART, source_query, batch_size: 20, follow });
  await bench.run(films);
  await bench.store.state.reset(films.id);
  await runToPause(bench, films);
  expect((await bench.store.follow.get(films.id)).comparePosition).not.toBeNull();
  return films;
}

/** Some of the keys are done; the position is as before, and the next run needs no comparison of everything. */
async function requireUnfinished({ id, target_table }: Pipeline, before: unknown, word: string): Promise<void> {
  const [done] = await bench.query(`SELECT count(*)::int AS rows FROM ${target_table} WHERE title = $1`, [word]);
  expect(done?.["rows"]).toBeLessThan(30);
  expect((await bench.store.follow.get(id)).position).toEqual(before);
}

const positionOf = async ({ id }: Pipeline): Promise<unknown> => (await bench.store.follow.get(id)).position;

it("R4.3 a pause takes effect after the chunk under way", async () => {
  const { films, free } = await stuckInRound("paused");
  const before = await positionOf(films);
  await bench.store.requests.pause(films.id);
  await free();
  expect(await bench.ended(films)).toMatchObject({ status: "PAUSED" });
  await requireUnfinished(films, before, "paused");
  const run = await bench.run(films);
  expect(run).toMatchObject({ status: "SUCCESS", strategy: "follow", rows_read: 30 });
  expect(reasonOf(run)).toBeUndefined();
  expect(await violations(bench, films)).toEqual([]);
});

it("a cancelled round leaves its position, and what it had done", async () => {
  const { films, free } = await stuckInRound("cancelled");
  const before = await positionOf(films);
  await bench.store.requests.cancel(films.id);
  expect(await bench.ended(films)).toMatchObject({ status: "CANCELLED" });
  await free();
  await requireUnfinished(films, before, "cancelled");
  expect(await bench.run(films)).toMatchObject({ status: "SUCCESS", strategy: "follow" });
  expect(await violations(bench, films)).toEqual([]);
});

it("a runner that stops hands the round back, and the next one does it again", async () => {
  const { films, free } = await stuckInRound("handed back");
  const before = await positionOf(films);
  const stopped = bench.stopRunner();
  await free();
  await stopped;
  expect(await bench.store.pipelines.get(films.id)).toMatchObject({ status: "RUN_REQUESTED" });
  await requireUnfinished(films, before, "handed back");
  await bench.startRunner();
  expect(await bench.ended(films)).toMatchObject({ status: "SUCCESS", strategy: "follow", trigger: "recovery" });
  expect(await violations(bench, films)).toEqual([]);
});

it("R4.3 a comparison of everything continues where it was paused", async () => {
  const films = await pausedInComparison();
  const run = await bench.run(films);
  expect(run).toMatchObject({ status: "SUCCESS", resumed: true });
  // What the earlier run found may not be so any more.
  expect(reasonOf(run)).toBe(
    "Everything was compared, continuing where an earlier run had stopped. An earlier run began it and said: The position was given up.",
  );
  expect((await bench.store.follow.get(films.id)).compareReason).toBe("The position was given up.");
  expect(run.rows_read).toBeLessThan(200);
  expect(await violations(bench, films)).toEqual([]);
});

it("a comparison of everything begins again if a view was altered meanwhile, which may be put back soon", async () => {
  const films = await pausedInComparison();
  await bench.query(shown("upper(title)"));
  const run = await bench.run(films);
  expect(run).toMatchObject({ status: "SUCCESS", resumed: false, rows_read: 200 });
  expect(reasonOf(run)).toBe("Everything was compared. An earlier run began it and said: The position was given up.");
  expect(await violations(bench, films)).toEqual([]);
});
