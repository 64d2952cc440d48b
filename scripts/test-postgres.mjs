// Runs the tests on another PostgreSQL version: node scripts/test-postgres.mjs 15 [vitest arguments]
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isPostgresVersion, onPostgres } from "./postgres-binaries.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [major, ...vitestArguments] = process.argv.slice(2);
if (!isPostgresVersion(major)) {
  console.error("usage: node scripts/test-postgres.mjs 15|16|17|18 [vitest arguments]");
  process.exit(2);
}

function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", ...options });
  if (error || status !== 0) process.exit(status ?? 1);
}

const environment = onPostgres(major);
run(process.execPath, [join(root, "scripts", "prepare.mjs")], { cwd: root });
run(process.execPath, [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...vitestArguments], {
  cwd: root,
  env: { ...process.env, ...environment },
});
