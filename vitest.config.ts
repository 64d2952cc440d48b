import { defineConfig } from "vitest/config";
import { LONG, ONLY_IN_CHAOS } from "./tests/support/long.ts";
import { LongestFirst } from "./tests/support/longest-first.ts";

/** Exploring names its files itself. */
const isSample = !LONG && process.env["EXPLORE_SEED"] === undefined;

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    // Run by npm run test:search, on real search servers, and by npm run test:chaos.
    exclude: ["tests/search/**", ...(isSample ? ONLY_IN_CHAOS : [])],
    sequence: { sequencer: LongestFirst },
    // A machine may be busy with other work: nothing is to fail by time that would have ended well.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // Files share a process, and with it the modules; a test that changes something in it puts it back.
    isolate: false,
    // Most tests wait for a database or a process: four at a time keep two cores busy.
    maxWorkers: 4,
    setupFiles: ["tests/support/random-setup.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
  },
});
