// One run of vitest, and its result. For the scripts that run parts of the tests.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export function prepare() {
  const { status } = spawnSync(process.execPath, [join(root, "scripts", "prepare.mjs")], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
}

/** A run that fails without a failed test, or without a report, counts as one failure. */
export function runVitest(args, environment) {
  const folder = mkdtempSync(join(tmpdir(), "vitrina-report-"));
  const report = join(folder, "report.json");
  const vitest = [join(root, "node_modules", "vitest", "vitest.mjs"), "run"];
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { status } = spawnSync(process.execPath, [...vitest, ...reporters, ...args], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  const counts = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : {};
  rmSync(folder, { recursive: true });
  return {
    passed: counts.numPassedTests ?? 0,
    failed: counts.numFailedTests || (status === 0 ? 0 : 1),
    skipped: counts.numPendingTests ?? 0,
  };
}

/** The line that .ci/run reads, and the end of the script. */
export function finish(name, { passed, failed, skipped }) {
  console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exit(failed === 0 ? 0 : 1);
}
