// Runs the tests on other versions of Node.js: node scripts/test-node.mjs 22 24 [-- vitest arguments]
// The npm package `node` brings the binaries; they are kept in .cache. The processes that tests start use that version, too.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const given = process.argv.slice(2);
const versions = given.filter((argument) => /^\d+(\.\d+){0,2}$/.test(argument));
const vitestArguments = given.filter((argument) => !versions.includes(argument) && argument !== "--");

// Each part of the product once: the guard and the domain, the stores, the API, tasks, commands, whole processes.
const SUBSET = [
  "tests/architecture.test.ts",
  "tests/domain",
  "tests/property",
  "tests/conformance",
  "tests/sql-guard/corpus.test.ts",
  "tests/tasks",
  "tests/integration/api.test.ts",
  "tests/integration/full-load.test.ts",
  "tests/integration/incremental-load.test.ts",
  "tests/integration/embedded-postgres.test.ts",
  "tests/cli/commands.test.ts",
  "tests/e2e/start.test.ts",
];

function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", cwd: root, ...options });
  if (error) console.error(error.message);
  return error ? 1 : (status ?? 1);
}

/** The folder of the binary, fetched when it is missing. */
function fetchNode(version) {
  const folder = join(root, ".cache", `node-${version}`);
  const bin = join(folder, "node_modules", "node", "bin");
  if (!existsSync(join(bin, "node"))) {
    mkdirSync(folder, { recursive: true });
    const status = run("npm", [
      "install",
      "--prefix",
      folder,
      "--no-save",
      "--no-audit",
      "--no-fund",
      `node@${version}`,
    ]);
    if (status !== 0) process.exit(status);
  }
  return bin;
}

if (versions.length === 0) {
  console.error("usage: npm run test:node -- 20.19.0 22 24 [vitest arguments]");
  process.exit(2);
}
if (run(process.execPath, [join(root, "scripts", "prepare.mjs")]) !== 0) process.exit(1);

const failed = versions.filter((version) => {
  const bin = fetchNode(version);
  const node = join(bin, "node");
  console.log(`\n== Node.js ${version}`);
  run(node, ["--version"]);
  const chosen = vitestArguments.length > 0 ? vitestArguments : SUBSET;
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  return run(node, [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...chosen], { env }) !== 0;
});
for (const version of versions) console.log(`Node.js ${version}: ${failed.includes(version) ? "FAILED" : "passed"}`);
process.exit(failed.length > 0 ? 1 : 0);
