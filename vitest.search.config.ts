import { defineConfig } from "vitest/config";

/** The suite that needs a search server; started by scripts/test-search.mjs, once for each server. */
export default defineConfig({
  test: {
    include: ["tests/search/**/*.test.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // One server on a few cores: files at once would only wait for each other.
    maxWorkers: 1,
    setupFiles: ["tests/support/random-setup.ts"],
    globalSetup: ["tests/support/global-setup.ts", "tests/support/search-setup.ts"],
  },
});
