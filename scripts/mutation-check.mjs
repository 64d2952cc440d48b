// Proves that the tests notice when a safeguard is gone: takes each one out in turn, in a copy of the repository, and
// runs the tests that must fail then. Usage: npm run test:mutation [-- part of a name]. Exits with 1 if one survives.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS } from "./mutations.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

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
}

/** Returns the compiler's words when it refuses. Not by prepare.mjs, which could also install packages. */
function compile(folder) {
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  const args = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder });
  cpSync(join(folder, "src/meta-store/migrations"), join(folder, "dist/meta-store/migrations"), { recursive: true });
  return status === 0 ? undefined : `${stdout}${stderr}`;
}

/** The titles of the tests that failed. */
function failingTests(folder, files) {
  const needsServer = (file) => file.startsWith("tests/search/");
  const search = files.filter(needsServer);
  return [
    ...(search.length < files.length
      ? runTests(
          folder,
          files.filter((file) => !needsServer(file)),
        )
      : []),
    ...(search.length > 0 ? runTests(folder, ["--config", "vitest.search.config.ts", ...search]) : []),
  ];
}

/** A run without any result is no answer. */
function runTests(folder, files) {
  const report = join(folder, "mutation-report.json");
  rmSync(report, { force: true });
  const args = ["node_modules/vitest/vitest.mjs", "run", "--reporter=json", `--outputFile=${report}`, ...files];
  const { stderr } = spawnSync(process.execPath, args, { cwd: folder, timeout: 600_000, maxBuffer: 2 ** 28 });
  if (!existsSync(report)) fail(`vitest left no report:\n${stderr}`);
  const { numTotalTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  if (numTotalTests === 0) fail(`no tests ran in ${files.join(", ")}:\n${stderr}`);
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === "failed").map((test) => test.fullName);
    return failed.length === 0 && status === "failed" ? [`${name} as a whole`] : failed;
  });
}

/** Returns what puts the file right again. */
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

/** True when the tests noticed. */
function isKilled(folder, mutation) {
  const restore = mutate(folder, mutation);
  try {
    const mistake = compile(folder);
    if (mistake !== undefined) fail(`"${mutation.name}" does not compile, so no test can notice it:\n${mistake}`);
    const [first, ...others] = failingTests(folder, mutation.tests);
    const more = others.length > 0 ? ` (and ${others.length} more)` : "";
    console.log(
      first === undefined ? `SURVIVED  ${mutation.name}` : `killed    ${mutation.name}\n          by: ${first}${more}`,
    );
    return first !== undefined;
  } finally {
    restore();
  }
}

function checkAll(folder) {
  const wanted = MUTATIONS.filter(({ name }) => name.includes(process.argv[2] ?? ""));
  if (wanted.length === 0) fail(`no mutation has "${process.argv[2]}" in its name.`);
  copyRepository(folder);
  const refused = compile(folder);
  if (refused !== undefined) fail(`the sources do not compile:\n${refused}`);
  const unmutated = failingTests(folder, [...new Set(wanted.flatMap(({ tests }) => tests))]);
  if (unmutated.length > 0) fail(`these tests fail without any mutation:\n  ${unmutated.join("\n  ")}`);
  const survivors = wanted.filter((mutation) => !isKilled(folder, mutation)).length;
  console.log(`${wanted.length - survivors} killed, ${survivors} survived`);
  return survivors === 0 ? 0 : 1;
}

const folder = mkdtempSync(join(tmpdir(), "vitrina-mutation-"));
try {
  process.exitCode = checkAll(folder);
} catch (error) {
  console.error(`mutation check: ${error.message}`);
  process.exitCode = 2;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
