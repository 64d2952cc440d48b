import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    // Run by npm run test:search, on real search servers.
    exclude: ["tests/search/**"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Most tests wait for a database or a process: three at a time keep two cores busy.
    maxWorkers: 3,
    setupFiles: ["tests/support/random-setup.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
  },
});
