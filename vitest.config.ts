import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    // Run by npm run test:search, on real search servers.
    exclude: ["tests/search/**"],
    // A machine may be busy with other work: nothing is to fail by time that would have ended well.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // Files share a process, and with it the modules; a test that changes something in it puts it back.
    isolate: false,
    // Most tests wait for a database or a process: three at a time keep two cores busy.
    maxWorkers: 3,
    setupFiles: ["tests/support/random-setup.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
  },
});
