import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../support/chaos-random.ts";
import { type FollowedSource, openFollowedSource } from "../support/followed-source.ts";
import {
  createRandomTables,
  followAtTheSameTime,
  RANDOM_QUERY,
  RANDOM_TABLES,
  RandomMart,
  randomStatements,
} from "../support/random-marts.ts";
import { runs } from "../support/seed.ts";

/**
 * Whatever happens at the source, in whatever order: after each round the mart is what the query gives in the round's
 * snapshot. The change table is so small here that it forgets all the time, and is full at times.
 */

const REASONS = [/^First\.$/, /forgotten/, /was full/, /truncated/];
const STEPS = runs(400, 4000);

let source: FollowedSource;
beforeAll(async () => {
  source = await openFollowedSource();
  await createRandomTables(source, { maxRows: 40 });
});
afterAll(() => source.drop());

describe("marts that follow", () => {
  it("are what their query gives, after every round", async () => {
    const random = seededRandom();
    const marts = [
      new RandomMart(await source.follow(RANDOM_QUERY)),
      new RandomMart(await source.follow(RANDOM_QUERY)),
    ];
    const [reader, late, quick] = [await source.connect(), await source.connect(), await source.connect()];
    const watch = source.watch();
    let isLateOpen = false;
    // Two transactions that wait for each other's rows would wait for ever.
    await late.query("SET lock_timeout = '20ms'");
    await quick.query("SET lock_timeout = '20ms'");
    const run = async (client: pg.Client, texts: readonly string[]): Promise<void> => {
      for (const text of texts) {
        await client.query("SAVEPOINT s");
        await client.query(text).catch(() => client.query("ROLLBACK TO s"));
      }
    };
    for (let step = 0; step < STEPS; step += 1) {
      const dice = random.below(100);
      if (dice < 35) {
        await quick.query("BEGIN");
        await run(quick, randomStatements(random));
        await quick.query(random.chance(0.9) ? "COMMIT" : "ROLLBACK");
      } else if (dice < 55) {
        if (!isLateOpen)
          await late.query(`BEGIN ISOLATION LEVEL ${random.chance(0.5) ? "READ COMMITTED" : "REPEATABLE READ"}`);
        isLateOpen = true;
        await run(late, randomStatements(random));
      } else if (dice < 63 && isLateOpen) {
        await late.query(random.chance(0.9) ? "COMMIT" : "ROLLBACK");
        isLateOpen = false;
      } else if (dice < 83) {
        await marts[random.chance(0.75) ? 0 : 1]?.sync(reader);
      } else if (dice < 97) {
        const seen = marts.flatMap(({ position }, n) =>
          position === undefined || random.chance(0.1)
            ? []
            : [{ pipelineId: `p${n}`, position, tables: RANDOM_TABLES }],
        );
        await watch.forgetSeen(seen);
      } else {
        await quick.query("TRUNCATE content.region").catch(() => undefined);
      }
    }
    if (isLateOpen) await late.query("COMMIT");
    for (const mart of marts) await mart.sync(reader);
    // All of it happened, and nothing else.
    expect(marts[0]?.kinds.keys).toBeGreaterThan(20);
    const reasons = new Set(
      marts.flatMap((mart) => [...mart.reasons].map((reason) => REASONS.find((known) => known.test(reason)))),
    );
    expect(reasons).toEqual(new Set(REASONS));
  });

  it("are so also while everything happens at the same time", async () => {
    expect(await followAtTheSameTime(source, STEPS / 4)).toBeGreaterThan(0);
  });
});
