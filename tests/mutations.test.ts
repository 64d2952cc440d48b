import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { MUTATIONS } from "../scripts/mutations.mjs";

/** The check itself takes long; that its mutations still fit the sources is seen at once. */
it.each(MUTATIONS)("the mutation fits the sources: $name", async ({ file, replace, tests }) => {
  const text = await readFile(file, "utf8");
  expect(replace.length).toBeGreaterThan(0);
  expect(replace.map(([from]) => from).filter((from) => !text.includes(from))).toEqual([]);
  expect(tests.filter((test) => !existsSync(test))).toEqual([]);
});
