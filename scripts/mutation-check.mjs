// Proves that the tests notice when a safeguard is missing: removes each one, in a copy of the repository, and runs the
// tests that must then fail. Usage: npm run test:mutation [-- part of a name …]. Exits with 1 if one survives.
// Two copies work at the same time: most tests wait for a database or a process.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS } from "./mutations.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const COPIES = 2;
const MOST_MS_PER_RUN = 1_200_000;

function fail(message) {
  throw new Error(message);
}

/** What is in the working tree, committed or not; the installed packages are shared. */
function copyRepository(folder) {
  const names = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const name of names.toString().split("\0")) {
    if (name === "" || name === "node_modules" || !existsSync(join(root, name))) continue;
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    cpSync(join(root, name), join(folder, name));
  }
  if (!existsSync(join(root, "node_modules"))) fail("the packages are not installed: run npm run build first.");
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  // The search servers, so that they are not fetched again for each copy.
  mkdirSync(join(root, ".cache"), { recursive: true });
  symlinkSync(join(root, ".cache"), join(folder, ".cache"));
}

/** Resolves however the program ends; a program that hangs is killed. */
function runNode(folder, args) {
  return new Promise((resolve, reject) => {
    // The tests that npm test skips may be the ones that notice.
    const env = { ...process.env, TEST_LONG: "1", TEST_PATIENCE_SECONDS: "90" };
    const child = spawn(process.execPath, args, { cwd: folder, env, timeout: MOST_MS_PER_RUN });
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, output: Buffer.concat(output).toString() }));
  });
}

/**
 * Returns the compiler's output when it fails. Not with prepare.mjs, which could also install packages. Only what
 * changed since the last time is compiled.
 */
async function compile(folder) {
  const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--incremental"];
  const { status, output } = await runNode(folder, [...tsc, "--tsBuildInfoFile", "compiled.tsbuildinfo"]);
  cpSync(join(folder, "src/meta-store/migrations"), join(folder, "dist/meta-store/migrations"), { recursive: true });
  return status === 0 ? undefined : output;
}

/** The titles of the tests that failed. `options` are vitest's. */
async function failingTests(folder, files, options = []) {
  const needsServer = (file) => file.startsWith("tests/search/");
  const plain = files.filter((file) => !needsServer(file));
  const search = files.filter(needsServer);
  return [
    ...(plain.length > 0 ? await runTests(folder, [...options, ...plain]) : []),
    ...(search.length > 0
      ? await runTests(folder, ["--config", "vitest.search.config.ts", ...options, ...search])
      : []),
  ];
}

/** A run without any result proves nothing. */
async function runTests(folder, args) {
  const report = join(folder, "mutation-report.json");
  rmSync(report, { force: true });
  // A test that is slow on a busy machine says nothing about the mutant.
  const patience = ["--testTimeout=240000", "--hookTimeout=240000"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--reporter=json", `--outputFile=${report}`, ...patience];
  const { output } = await runNode(folder, [...vitest, ...args]);
  if (!existsSync(report)) fail(`vitest left no report:\n${output}`);
  const { numTotalTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  if (numTotalTests === 0) fail(`no tests ran in ${args.join(", ")}:\n${output}`);
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === "failed").map((test) => test.fullName);
    return failed.length === 0 && status === "failed" ? [`${name} as a whole`] : failed;
  });
}

/** Returns a function that restores the file. */
function mutate(folder, { name, file, replace }) {
  const path = join(folder, file);
  const original = readFileSync(path, "utf8");
  let mutant = original;
  for (const [from, to] of replace) {
    if (!mutant.includes(from)) fail(`"${name}" no longer fits: ${file} does not contain\n  ${from}`);
    mutant = mutant.replaceAll(from, to);
  }
  writeFileSync(path, mutant);
  return () => writeFileSync(path, original);
}

/** True when the tests noticed. The first that fails is enough. */
async function isKilled(folder, mutation) {
  const restore = mutate(folder, mutation);
  try {
    const mistake = await compile(folder);
    if (mistake !== undefined) {
      console.log(`UNCOMPILED ${mutation.name}: no test can notice it\n${mistake}`);
      return false;
    }
    const [first] = await failingTests(folder, mutation.tests, ["--bail=1"]);
    console.log(
      first === undefined ? `SURVIVED  ${mutation.name}` : `killed    ${mutation.name}\n          by: ${first}`,
    );
    return first !== undefined;
  } finally {
    restore();
  }
}

function wantedMutations(parts) {
  if (parts.length === 0) return MUTATIONS;
  const wanted = MUTATIONS.filter(({ name }) => parts.some((part) => name.includes(part)));
  return wanted.length > 0 ? wanted : fail(`no mutation has "${parts.join('" or "')}" in its name.`);
}

/** Without the program that its tests need nothing could notice the mutant. */
function canBeNoticed({ name, needs }) {
  if (needs === undefined || spawnSync(needs, ["--version"]).error === undefined) return true;
  console.log(`NOT RUN   ${name}: there is no ${needs} here`);
  return false;
}

async function checkAll(folders) {
  const wanted = wantedMutations(process.argv.slice(2)).filter(canBeNoticed);
  for (const folder of folders) copyRepository(folder);
  const refused = await compile(folders[0]);
  if (refused !== undefined) fail(`the sources do not compile:\n${refused}`);
  const unmutated = await failingTests(folders[0], [...new Set(wanted.flatMap(({ tests }) => tests))]);
  if (unmutated.length > 0) fail(`these tests fail without any mutation:\n  ${unmutated.join("\n  ")}`);
  const waiting = [...wanted];
  let unnoticed = 0;
  const workers = folders.map(async (folder) => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (!(await isKilled(folder, next))) unnoticed += 1;
    }
  });
  // Each finishes what it has begun, so that nothing runs in a folder that is removed.
  for (const { reason } of await Promise.allSettled(workers)) if (reason !== undefined) throw reason;
  console.log(`${wanted.length - unnoticed} killed, ${unnoticed} survived or do not compile`);
  return unnoticed === 0 ? 0 : 1;
}

const folders = Array.from({ length: COPIES }, () => mkdtempSync(join(tmpdir(), "vitrina-mutation-")));
try {
  process.exitCode = await checkAll(folders);
} catch (error) {
  console.error(`mutation check: ${error.message}`);
  process.exitCode = 2;
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
