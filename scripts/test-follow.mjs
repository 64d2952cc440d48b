// The property of follow mode, at length: node scripts/test-follow.mjs [--steps n] [files and options of vitest]
// Ends with the line "follow: N passed, N failed, N skipped".
import { parseArgs } from "node:util";
import { finish, prepare, runVitest } from "./run-vitest.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { steps: { type: "string", default: "2000" } },
});
if (!(Number(values.steps) > 0)) {
  console.error("usage: npm run test:follow [-- --steps n] [files of vitest]");
  process.exit(2);
}
prepare();
const files = positionals.length > 0 ? positionals : ["tests/sql-analysis/property"];
finish("follow", runVitest(files, { TEST_LONG: "1", FOLLOW_STEPS: values.steps }));
