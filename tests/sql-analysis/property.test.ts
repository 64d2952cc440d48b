import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LONG } from "../support/long.ts";
import { runs } from "../support/seed.ts";
import { type SlotServer, startSlotServer } from "../support/slot-server.ts";
import {
  createMart,
  emptyingStep,
  type FollowingDatabase,
  fill,
  follow,
  holdingStep,
  type Mart,
  openFollowing,
  planAsFarAsPossible,
  stepArbitrary,
} from "./following.ts";
import { generatedQueries } from "./generated.ts";
import { WAITING } from "./late-commit.ts";
import { type FollowedQuery, QUERIES } from "./queries.ts";

/** Marts at once, and steps with the same ones. */
const [BATCH, ROUNDS] = [48, 12];
/** `npm run test:follow -- --steps 2000` does more of both. */
const STEPS = Number(process.env["FOLLOW_STEPS"] ?? runs(6, 30));

let server: SlotServer;
beforeAll(async () => {
  server = await startSlotServer(WAITING);
});
afterAll(() => server.stop());

describe.each(["a change table", "a slot"] as const)("with changes from %s", (log) => {
  let following: FollowingDatabase;
  beforeAll(async () => {
    following = await openFollowing(server, log);
    await fill(following.client, 12);
  });
  afterAll(() => following.close());

  it("after every round each mart has exactly the rows of its query", async () => {
    const since = await following.recorder.now(following.client);
    const marts: Mart[] = [];
    for (const [number, query] of QUERIES.entries()) {
      const plan = await following.plan(query);
      expect({ query: query.name, refusals: plan.refusals }).toEqual({ query: query.name, refusals: [] });
      marts.push(await createMart(following.client, query, plan, number));
    }
    const certain = [emptyingStep, holdingStep].flatMap((one) => fc.sample(one, 1));
    const steps = [...certain, ...fc.sample(stepArbitrary, STEPS)];
    const { violated, place: _, ...figures } = await follow(following, marts, steps, since);
    if (LONG) console.log({ ...figures, late: following.late?.count });
    expect(violated).toEqual([]);
    expect(following.late?.count).toBeGreaterThan(0);
    expect(figures.emptied).toBeGreaterThan(0);
    expect(figures.oldOfOpen).toBeGreaterThan(0);
  });

  it("the same for generated queries, as far as they can be followed", async () => {
    const queries = generatedQueries(Math.ceil(STEPS / ROUNDS) * BATCH);
    const steps = fc.sample(stepArbitrary, STEPS);
    const total = { queries: queries.length, whole: 0, inPart: 0, rounds: 0, oldOfOpen: 0, comparisons: 0, keys: 0 };
    for (let batch = 0; batch * ROUNDS < STEPS; batch += 1) {
      const since = await following.recorder.now(following.client);
      const marts = await createMarts(following, queries.slice(batch * BATCH, (batch + 1) * BATCH), total);
      const part = steps.slice(batch * ROUNDS, (batch + 1) * ROUNDS);
      const { violated, rounds, oldOfOpen, comparisons, keys } = await follow(following, marts, part, since);
      total.rounds += rounds;
      total.oldOfOpen += oldOfOpen;
      total.comparisons += comparisons;
      total.keys += keys;
      const sqlOf = (name: string) => marts.find(({ query }) => name.startsWith(`${query.name},`))?.query.sql;
      expect(violated.map((name) => `${name}: ${sqlOf(name)}`)).toEqual([]);
    }
    if (LONG) console.log(total);
  });
});

async function createMarts(
  following: FollowingDatabase,
  queries: readonly FollowedQuery[],
  total: { whole: number; inPart: number },
): Promise<Mart[]> {
  const marts: Mart[] = [];
  for (const [number, query] of queries.entries()) {
    const plan = await planAsFarAsPossible(following, query);
    const followed = plan.tables.filter(({ change }) => change.kind === "keys");
    if (plan.refusals.length > 0 || followed.length === 0) continue;
    if (followed.length === plan.tables.length) total.whole += 1;
    else total.inPart += 1;
    marts.push(await createMart(following.client, query, plan, 1000 + number));
  }
  return marts;
}
