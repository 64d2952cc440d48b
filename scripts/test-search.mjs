// Runs the search suite on real servers, one after the other: node scripts/test-search.mjs [server …] [vitest arguments]
// The servers are fetched into .cache when they are missing. With ELASTICSEARCH_URL the suite runs on that server alone.
// The tests that kill runners and servers take the longest, and run only on the newest server of each family, unless named.
import { finish, prepare, runVitest } from "./run-vitest.mjs";
import { fetchDistribution, SEARCH_SERVERS } from "./search-servers.mjs";

const isServer = (argument) => Object.hasOwn(SEARCH_SERVERS, argument);
const named = process.argv.slice(2).filter(isServer);
const vitestArguments = process.argv.slice(2).filter((argument) => !isServer(argument));
const total = { passed: 0, failed: 0, skipped: 0, failures: [] };

const NEWEST = ["opensearch3", "elasticsearch9"];

function run(server, environment) {
  console.log(`== search suite on ${server}`);
  const isWhole = named.length > 0 || environment.TEST_SEARCH_SERVER === undefined || NEWEST.includes(server);
  const choice = isWhole ? [] : ["--exclude", "tests/search/chaos/**"];
  const counts = runVitest(["--config", "vitest.search.config.ts", ...choice, ...vitestArguments], environment);
  for (const name of ["passed", "failed", "skipped"]) total[name] += counts[name];
  total.failures.push(...counts.failures.map((failure) => `${server}: ${failure}`));
}

prepare();
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
finish("search", total);
