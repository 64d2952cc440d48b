import { expect, it } from "vitest";
import { plural } from "../../src/domain/counted.ts";

it("one thing is called otherwise than several, and none", () => {
  expect([0, 1, 2, 1000].map((number) => plural(number, "round"))).toEqual([
    "0 rounds",
    "1 round",
    "2 rounds",
    "1,000 rounds",
  ]);
  expect([1, 2].map((number) => plural(number, "batch", "batches"))).toEqual(["1 batch", "2 batches"]);
});
