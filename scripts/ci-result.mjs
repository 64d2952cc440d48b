// The end of .ci/run: what failed, by name, and how much passed. node scripts/ci-result.mjs <report of npm test> <output of
// the other suites>
import { readFileSync } from "node:fs";
import { printFailures, readReport } from "./run-vitest.mjs";

/** The others say by themselves why they were not run. */
const REQUIRED = ["chaos", "soak", "follow", "follow15", "search"];
const [report, said] = process.argv.slice(2);
const total = readReport(report);
printFailures(total.failures);
const output = readFileSync(said, "utf8");
for (const [failure] of output.matchAll(/^FAILED .*\n(?: {4}.*\n)*/gm)) process.stdout.write(failure);
const lines = [...output.matchAll(/^(\w+): (\d+) passed, (\d+) failed, (\d+) skipped$/gm)];
for (const suite of REQUIRED) {
  if (lines.some(([, name]) => name === suite)) continue;
  console.log(`FAILED ${suite}: it left no result`);
  total.failed += 1;
}
for (const [, , passed, failed, skipped] of lines) {
  total.passed += Number(passed);
  total.failed += Number(failed);
  total.skipped += Number(skipped);
}
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
