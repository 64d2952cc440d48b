// Proves that the tests notice when a safeguard is gone: takes each one out in turn, in a copy of the repository, and
// runs the tests that must fail then. Usage: npm run test:mutation [-- part of a name]. Exits with 1 if one survives.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const ZOMBIE = "tests/chaos/zombie.test.ts";
const LATE_COMMIT = "tests/chaos/late-commit.test.ts";

/**
 * `replace`: pairs of texts; each must occur in the file, and all its occurrences are replaced. A mutant must compile:
 * a condition is made constant in a way that the compiler does not see through.
 */
const MUTATIONS = [
  {
    name: "access: every login may do everything",
    file: "src/control-plane/auth/guard.ts",
    replace: [["mayActAs(caller.role, needed)", "mayActAs(needed, needed)"]],
    tests: ["tests/integration/api-access.test.ts"],
  },
  {
    name: "access: a revoked key is taken",
    file: "src/control-plane/auth/key-login.ts",
    replace: [["found.revoked", "found.name.length === 0"]],
    tests: ["tests/integration/api-keys.test.ts"],
  },
  {
    name: "audit: a change is kept without its entry",
    file: "src/postgres/connection.ts",
    replace: [["await pool.beforeCommit?.(client);", ""]],
    tests: ["tests/integration/api-audit.test.ts"],
  },
  {
    name: "fence: a lost lease is not noticed at commit",
    file: "src/meta-store/postgres/checkpoints.ts",
    replace: [["lease_owner = $2 AND lease_epoch = $3", "$2::uuid IS NOT NULL AND $3::bigint IS NOT NULL"]],
    tests: [ZOMBIE],
  },
  {
    name: "fence beside the data: an old epoch may still write",
    file: "src/connectors/postgres/kept-checkpoint.ts",
    replace: [["pipeline_id = $1 AND epoch = $2", "pipeline_id = $1 AND $2::bigint IS NOT NULL"]],
    tests: [ZOMBIE],
  },
  {
    name: "timeout: a frozen runner keeps its transaction",
    file: "src/connectors/postgres/sink.ts",
    replace: [["config.idleTimeoutMs", "config.idleTimeoutMs * 0"]],
    tests: [ZOMBIE],
  },
  {
    name: "reconcile: the target is looked at after the source",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_current_snapshot()", "READ ONLY"]],
    tests: ["tests/chaos/reconcile.test.ts"],
  },
  {
    name: "watermark: moves as far as was read, past transactions in flight",
    file: "src/connectors/postgres/change-cursor.ts",
    replace: [['return within === "t" ? reached', 'return within !== "no answer" ? reached']],
    tests: [LATE_COMMIT],
  },
  {
    name: "watermark of numbers: a position counts at once",
    file: "src/connectors/postgres/change-cursor.ts",
    replace: [['rows[0]?.ended !== "t"', "rows[0]?.ended === undefined"]],
    tests: [LATE_COMMIT],
  },
  {
    name: "fingerprint: the watermark of another query is reused",
    file: "src/data-plane/load.ts",
    replace: [["state.watermarkFingerprint !== fingerprint)", 'state.watermarkFingerprint === "none")']],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "fingerprint: the position of another query is continued",
    file: "src/domain/checkpoint.ts",
    replace: [
      ["checkpoint.fingerprint === fingerprint ?", "checkpoint.fingerprint !== fingerprint.concat(fingerprint) ?"],
    ],
    tests: ["tests/integration/runner.test.ts"],
  },
  {
    name: "accounting: a batch that does not add up is recorded",
    file: "src/domain/run.ts",
    replace: [
      ["return rows_read + rows_added ===", "return rows_read < 0 || rows_read + rows_added <"],
      ["+ rows_dropped;", "+ rows_dropped + 1e9;"],
    ],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "accounting: the database does not check the sums",
    file: "src/meta-store/migrations/0004_engine.sql",
    replace: [["rows_read + rows_added = rows_written", "rows_read + rows_added <> -1 - rows_written"]],
    tests: ["tests/integration/migrations.test.ts"],
  },
  {
    name: "protocol: a query may hold several statements",
    file: "src/connectors/postgres/read-session.ts",
    replace: [[', queryMode: "extended"', ""]],
    tests: ["tests/chaos/resume.test.ts"],
  },
  {
    name: "collation: text is compared by the rules of a language",
    file: "src/connectors/postgres/query-text.ts",
    replace: [[`collatable ? ' COLLATE "C"' : ""`, 'collatable ? " " : ""']],
    tests: ["tests/chaos/resume.test.ts"],
  },
  {
    name: "query guard: the parse tree is not examined",
    file: "src/sql-guard/guard.ts",
    replace: [
      [
        "const findings = await examine(query, rules);\n  if (findings.length > 0)",
        "const findings = await examine(query, rules);\n  if (findings.length > 1e9)",
      ],
    ],
    tests: ["tests/sql-guard/corpus.test.ts", "tests/integration/guarded-queries.test.ts"],
  },
  {
    name: "query guard: what the source makes of a query is not looked at",
    file: "src/sql-guard/guard.ts",
    replace: [
      [
        "const findings = await audit(session, query, rules);\n  if (findings.length > 0)",
        "const findings = await audit(session, query, rules);\n  if (findings.length > 1e9)",
      ],
    ],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: a run does not examine its query",
    file: "src/data-plane/load.ts",
    replace: [["auditQuery(session, plan.readerQuery, parts.guard)", "Promise.resolve([session, auditQuery])"]],
    tests: ["tests/integration/guarded-queries.test.ts"],
  },
  {
    name: "query guard: depth is not limited before the parser runs",
    file: "src/sql-guard/limits.ts",
    replace: [["const DEEPEST = 300;", "const DEEPEST = 1e9;"]],
    tests: ["tests/sql-guard/text.test.ts"],
  },
  {
    name: "guard: a full load deletes without a limit",
    file: "src/connectors/deletion-guard.ts",
    replace: [["if (existing === 0 || deleted === 0) return;", "if (existing >= 0 || deleted === 0) return;"]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "refused load: is continued instead of read anew",
    file: "src/data-plane/executor.ts",
    replace: [['code !== "DATABASE_BUSY")', 'code === "DATABASE_BUSY")']],
    tests: ["tests/chaos/resume.test.ts"],
  },
];

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

/** The titles of the tests that failed. A run without any result is no answer. */
function failingTests(folder, files) {
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
