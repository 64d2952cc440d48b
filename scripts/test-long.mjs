// The proofs that take too long for npm test, which tries a piece of each: node scripts/test-long.mjs chaos|soak
// [files and options of vitest]. Ends with the line "chaos: N passed, N failed, N skipped".
import { finish, prepare, runVitest } from "./run-vitest.mjs";

const SUITES = {
  // Every kill, freeze and cut, for every kind of load on every path.
  chaos: ["tests/chaos"],
  // More random cases, and larger loads.
  soak: [
    "tests/property",
    "tests/sql-guard/fuzz",
    "tests/sql-guard/structure",
    "tests/sql-guard/text",
    "tests/integration/lost-target",
    "tests/integration/two-runners",
  ],
};

const [suite, ...given] = process.argv.slice(2);
if (!Object.hasOwn(SUITES, suite ?? "")) {
  console.error("usage: npm run test:chaos | npm run test:soak [-- files and options of vitest]");
  process.exit(2);
}
prepare();
finish(suite, runVitest(given.length > 0 ? given : SUITES[suite], { TEST_LONG: "1" }));
