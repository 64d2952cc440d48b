// The property of follow mode, at length: node scripts/test-follow.mjs [--steps n] [--postgres 15] [files and options of
// vitest]. Ends with the line "follow: N passed, N failed, N skipped".
import { parseArgs } from "node:util";
import { isPostgresVersion, onPostgres } from "./postgres-binaries.mjs";
import { finish, prepare, runVitest } from "./run-vitest.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { steps: { type: "string", default: "2000" }, postgres: { type: "string" } },
});
const { steps, postgres } = values;
if (!(Number(steps) > 0) || (postgres !== undefined && !isPostgresVersion(postgres))) {
  console.error("usage: npm run test:follow [-- --steps n --postgres 15|16|17|18] [files of vitest]");
  process.exit(2);
}
prepare();
const files = positionals.length > 0 ? positionals : ["tests/sql-analysis/property"];
const environment = { TEST_LONG: "1", FOLLOW_STEPS: steps, ...(postgres !== undefined && onPostgres(postgres)) };
finish(`follow${postgres ?? ""}`, runVitest(files, environment));
