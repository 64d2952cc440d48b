import { LONG } from "./long.ts";

/**
 * What random tests draw from. `npm test` draws the same on every machine and every day: a fresh clone must pass, or fail
 * for everybody. `npm run explore` uses a new seed, and draws more.
 */
const given = process.env["EXPLORE_SEED"];

export const SEED = given === undefined ? 20_260_101 : Number(given) | 0;

const FACTOR = Number(process.env["EXPLORE_FACTOR"] ?? 1);

/** How often a property is tried: as often as the test says, by `npm run test:soak` maybe more, and more when exploring. */
export function runs(atLeast: number, atLength: number = atLeast): number {
  return Math.max(1, Math.round((LONG ? atLength : atLeast) * FACTOR));
}
