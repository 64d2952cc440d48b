// Runs the search suite on real servers, one after the other: node scripts/test-search.mjs [server …] [vitest arguments]
// The servers are fetched into .cache when they are missing. With ELASTICSEARCH_URL the suite runs on that server alone.
// What kills runners and servers takes the longest, and runs only on the newest server of each family, unless it is named.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fetchDistribution, SEARCH_SERVERS } from "./search-servers.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const isServer = (argument) => Object.hasOwn(SEARCH_SERVERS, argument);
const named = process.argv.slice(2).filter(isServer);
const vitestArguments = process.argv.slice(2).filter((argument) => !isServer(argument));
const total = { passed: 0, failed: 0, skipped: 0 };

const NEWEST = ["opensearch3", "elasticsearch9"];

function run(server, environment) {
  console.log(`== search suite on ${server}`);
  const folder = mkdtempSync(join(tmpdir(), "vitrina-search-report-"));
  const report = join(folder, "report.json");
  const vitest = [join(root, "node_modules", "vitest", "vitest.mjs"), "run", "--config", "vitest.search.config.ts"];
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const isWhole = named.length > 0 || environment.TEST_SEARCH_SERVER === undefined || NEWEST.includes(server);
  const choice = isWhole ? [] : ["--exclude", "tests/search/chaos/**"];
  const { status } = spawnSync(process.execPath, [...vitest, ...reporters, ...choice, ...vitestArguments], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
  rmSync(folder, { recursive: true });
  total.passed += counts.numPassedTests ?? 0;
  total.failed += counts.numFailedTests || (status === 0 ? 0 : 1);
  total.skipped += counts.numPendingTests ?? 0;
}

spawnSync(process.execPath, [join(root, "scripts", "prepare.mjs")], { cwd: root, stdio: "inherit" });
if (process.env.ELASTICSEARCH_URL) run("ELASTICSEARCH_URL", {});
else {
  for (const server of named.length > 0 ? named : Object.keys(SEARCH_SERVERS)) {
    const missing = await fetchDistribution(server).then(
      () => undefined,
      (error) => error.message,
    );
    if (missing === undefined) run(server, { TEST_SEARCH_SERVER: server });
    else
      console.log(
        `The search suite was not run on ${server}: ${missing}. Set ELASTICSEARCH_URL to a server to run it there.`,
      );
  }
}
console.log(`search: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);
