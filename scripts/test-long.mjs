// The proofs that take too long for npm test, which tries a piece of each: node scripts/test-long.mjs chaos|soak
// [files and options of vitest]. Ends with the line "chaos: N passed, N failed, N skipped".
import { finish, prepare, runVitest } from "./run-vitest.mjs";

const SUITES = {
  // Every kill, freeze and cut, for every kind of load on every path.
  chaos: ["tests/chaos"],
  // More random cases, larger loads, and the commands of every page.
  soak: [
    "tests/property",
    "tests/sql-guard/fuzz",
    "tests/sql-guard/structure",
    "tests/sql-guard/text",
    "tests/sql-analysis/property",
    "tests/integration/lost-target",
    "tests/integration/two-runners",
    "tests/integration/follow-concurrent",
    "tests/e2e/documented-commands",
    "tests/e2e/demo",
  ],
};

const [suite, ...given] = process.argv.slice(2);
if (!Object.hasOwn(SUITES, suite ?? "")) {
  console.error("usage: npm run test:chaos | npm run test:soak [-- files and options of vitest]");
  process.exit(2);
}
prepare();
finish(suite, runVitest(given.length > 0 ? given : SUITES[suite], { TEST_LONG: "1" }));
