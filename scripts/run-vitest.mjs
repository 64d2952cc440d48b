// One run of vitest, and its result. For the scripts that run parts of the tests.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
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
  const result = readReport(report);
  rmSync(folder, { recursive: true });
  return { ...result, failed: result.failed || (status === 0 ? 0 : 1) };
}

/** What the JSON reporter wrote; a file whose tests could not be run counts as a failure. */
export function readReport(path) {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (text === "") return { passed: 0, failed: 1, skipped: 0, failures: ["vitest: it left no report"] };
  const report = JSON.parse(text);
  const failures = report.testResults.flatMap((file) => {
    const failed = file.assertionResults.filter(({ status }) => status === "failed");
    const place = relative(root, file.name);
    if (failed.length > 0)
      return failed.map((test) => `${place} > ${test.fullName}\n${test.failureMessages.join("\n")}`);
    return file.status === "failed" ? [`${place}\n${file.message}`] : [];
  });
  return { passed: report.numPassedTests, failed: failures.length, skipped: report.numPendingTests, failures };
}

/** Each failure with the head of its message, so that the end of a long output says what failed. */
export function printFailures(failures) {
  for (const failure of failures) {
    const [name, ...message] = failure.split("\n");
    console.log(`FAILED ${name}`);
    for (const line of message.slice(0, 25)) console.log(`    ${line}`);
  }
}

/** The line that .ci/run reads, and the end of the script. */
export function finish(name, { passed, failed, skipped, failures }) {
  printFailures(failures);
  console.log(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exit(failed === 0 ? 0 : 1);
}
