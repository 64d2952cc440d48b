// Proves that the tests notice when a safeguard is missing: removes each one, in a copy of the repository, and runs the
// tests that must then fail. Usage: npm run test:mutation [-- part of a name …]. Exits with 1 if one survives.
// Two copies work at the same time: most tests wait for a database or a process. Which test noticed a mutant is kept in
// mutation-killers.json: it is tried first, alone, and the whole file only if it notices nothing.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS } from "./mutations.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const KILLERS = join(root, "scripts", "mutation-killers.json");
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

/** The titles of the tests that failed, and how many passed. `options` are vitest's. */
async function runFiles(folder, files, options = []) {
  const needsServer = (file) => file.startsWith("tests/search/");
  const plain = files.filter((file) => !needsServer(file));
  const search = files.filter(needsServer);
  const results = [
    ...(plain.length > 0 ? [await runTests(folder, [...options, ...plain])] : []),
    ...(search.length > 0
      ? [await runTests(folder, ["--config", "vitest.search.config.ts", ...options, ...search])]
      : []),
  ];
  return {
    failed: results.flatMap(({ failed }) => failed),
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
  };
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
  const { numTotalTests, numPassedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  if (numTotalTests === 0) fail(`no tests ran in ${args.join(", ")}:\n${output}`);
  const failed = testResults.flatMap(({ name, status, assertionResults }) => {
    const titles = assertionResults.filter((test) => test.status === "failed").map((test) => test.fullName);
    return titles.length === 0 && status === "failed" ? [`${basename(name)}${AS_A_WHOLE}`] : titles;
  });
  return { failed, passed: numPassedTests };
}

const AS_A_WHOLE = " as a whole";

/** One test alone, as vitest selects it by its title. */
const only = (title) => ["-t", `^${title.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`];

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

/** The title of the first test that noticed, if one did. */
async function findKiller(folder, mutation, known) {
  const restore = mutate(folder, mutation);
  try {
    const mistake = await compile(folder);
    if (mistake !== undefined) {
      console.log(`UNCOMPILED ${mutation.name}: no test can notice it\n${mistake}`);
      return undefined;
    }
    const alone = known === undefined ? [] : (await runFiles(folder, mutation.tests, only(known))).failed;
    const [first] = alone.length > 0 ? alone : (await runFiles(folder, mutation.tests, ["--bail=1"])).failed;
    console.log(
      first === undefined ? `SURVIVED  ${mutation.name}` : `killed    ${mutation.name}\n          by: ${first}`,
    );
    return first;
  } finally {
    restore();
  }
}

const passing = new Map();

/** Whether the test passes without the mutation: otherwise its failure says nothing. Each is asked once. */
function passesUnmutated(folder, { tests }, killer) {
  const check = async () => {
    const mistake = await compile(folder);
    if (mistake !== undefined) fail(`the sources do not compile:\n${mistake}`);
    const { failed, passed } = await runFiles(folder, tests, killer.endsWith(AS_A_WHOLE) ? [] : only(killer));
    for (const title of failed) console.log(`UNPROVEN  this fails without any mutation, too: ${title}`);
    if (passed === 0) console.log(`UNPROVEN  no test passes alone that is called: ${killer}`);
    return failed.length === 0 && passed > 0;
  };
  if (!passing.has(killer)) passing.set(killer, check());
  return passing.get(killer);
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

const readKillers = () => (existsSync(KILLERS) ? JSON.parse(readFileSync(KILLERS, "utf8")) : {});

/** In the order of the mutations, without those that are gone. */
function keepKillers(found) {
  const killers = { ...readKillers(), ...found };
  const known = MUTATIONS.filter(({ name }) => killers[name] !== undefined && !killers[name].endsWith(AS_A_WHOLE));
  writeFileSync(
    KILLERS,
    `${JSON.stringify(Object.fromEntries(known.map(({ name }) => [name, killers[name]])), null, 2)}\n`,
  );
}

async function checkAll(folders) {
  const wanted = wantedMutations(process.argv.slice(2)).filter(canBeNoticed);
  const killers = readKillers();
  for (const folder of folders) copyRepository(folder);
  const waiting = [...wanted];
  const found = {};
  const workers = folders.map(async (folder) => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const killer = await findKiller(folder, next, killers[next.name]);
      if (killer === undefined || !(await passesUnmutated(folder, next, killer))) continue;
      found[next.name] = killer;
      // At once: a run of hours may be interrupted.
      keepKillers(found);
    }
  });
  // Each finishes what it has begun, so that nothing runs in a folder that is removed.
  for (const { reason } of await Promise.allSettled(workers)) if (reason !== undefined) throw reason;
  const killed = Object.keys(found).length;
  console.log(`${killed} killed, ${wanted.length - killed} survived, do not compile or are unproven`);
  return killed === wanted.length ? 0 : 1;
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
