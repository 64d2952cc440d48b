// Has Prometheus' own promtool check everything that is made for Prometheus: the scrapes of real processes after real runs,
// the alerts with their tests, the scrape configuration, and every expression of the dashboard. npm run test:metrics
// promtool is PROMTOOL, or the one on the PATH, or is fetched once into .cache from Debian's package.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const prometheus = join(root, "deploy", "prometheus");
let failed = 0;

function run(command, args, options = {}) {
  return spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
}

function check(what, command, args, options) {
  console.log(`== ${what}`);
  const { status, error } = run(command, args, options);
  if (error === undefined && status === 0) return;
  failed += 1;
  console.log(`FAILED: ${what}${error === undefined ? "" : ` (${error.message})`}`);
}

function works(command) {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0;
}

function findPromtool() {
  const given = process.env.PROMTOOL || "promtool";
  if (works(given)) return given;
  if (process.env.PROMTOOL) throw new Error(`PROMTOOL is ${given}, which cannot be started`);
  const folder = join(root, ".cache", "prometheus");
  const fetched = join(folder, "usr", "bin", "promtool");
  if (!existsSync(fetched)) fetchFromDebian(folder);
  return fetched;
}

/** Unpacked, not installed, so that no administrator is needed. */
function fetchFromDebian(folder) {
  mkdirSync(folder, { recursive: true });
  const quiet = { cwd: folder, stdio: ["ignore", "ignore", "inherit"] };
  const downloaded = spawnSync("apt-get", ["download", "prometheus"], quiet);
  const file = readdirSync(folder).find((name) => name.endsWith(".deb"));
  const isUnpacked = file !== undefined && spawnSync("dpkg-deb", ["-x", file, "."], quiet).status === 0;
  if (downloaded.status !== 0 || !isUnpacked)
    throw new Error(
      "promtool is not on the PATH and could not be fetched by apt-get; install Prometheus or set PROMTOOL",
    );
}

/** As recording rules, because promtool has no other way to parse an expression. */
function dashboardRules(file) {
  const { panels } = JSON.parse(readFileSync(join(root, "deploy", "grafana", "vitrina.json"), "utf8"));
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const rules = expressions.map((expr, index) => ({
    record: `dashboard:expression:${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$pipeline", ".*"),
  }));
  writeFileSync(file, stringify({ groups: [{ name: "dashboard", rules }] }));
}

run(process.execPath, [join(root, "scripts", "prepare.mjs")]);
const promtool = findPromtool();
const folder = mkdtempSync(join(tmpdir(), "vitrina-metrics-"));
try {
  const inPrometheus = { cwd: prometheus };
  check("promtool check rules", promtool, ["check", "rules", "alerts.yml"], inPrometheus);
  check("promtool test rules", promtool, ["test", "rules", "alerts.test.yml"], inPrometheus);
  check("promtool check config", promtool, ["check", "config", "prometheus.yml"], inPrometheus);
  const rules = join(folder, "dashboard.yml");
  dashboardRules(rules);
  check("the expressions of the dashboard", promtool, ["check", "rules", rules]);

  const scrapes = join(folder, "scrapes");
  const vitest = [join(root, "node_modules", "vitest", "vitest.mjs"), "run", "tests/e2e/metrics.test.ts"];
  check("real runs", process.execPath, vitest, { env: { ...process.env, METRICS_SCRAPES: scrapes } });
  if (!existsSync(scrapes)) throw new Error("tests/e2e/metrics.test.ts kept no scrapes");
  for (const file of readdirSync(scrapes)) {
    const input = readFileSync(join(scrapes, file));
    check(`promtool check metrics: ${file}`, promtool, ["check", "metrics"], {
      input,
      stdio: ["pipe", "inherit", "inherit"],
    });
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(failed === 0 ? "metrics: every check passed" : `metrics: ${failed} checks failed`);
process.exit(failed === 0 ? 0 : 1);
