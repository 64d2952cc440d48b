import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";

/** What would make a test draw differently from one day to the next. `npm run explore` is for that. */
const CHANCE = /Math\.random\(|interruptAfterTimeLimit|skipAllAfterTimeLimit|\bseed: (?!SEED\b|[\d_]+\b)|randomInt\(/;

it("every random test draws from the fixed seed, and a fixed number of times", () => {
  const files = readdirSync("tests", { recursive: true })
    .map((name) => join("tests", String(name)))
    .filter((name) => name.endsWith(".ts") && name !== join("tests", "random.test.ts"));
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((name) => CHANCE.test(readFileSync(name, "utf8")))).toEqual([]);
  if (process.env["EXPLORE_SEED"] === undefined) {
    expect(fc.sample(fc.integer(), 3)).toEqual([-1490666907, 2, 990810246]);
  }
});
