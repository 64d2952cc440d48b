// npm run test:airflow [-- pytest arguments]: the Airflow provider in a real Airflow, against a really running Vitrina.
// Needs Python 3.10 or newer (PYTHON names another one) and PyPI. Airflow is installed once, into .cache, in exactly the
// versions of integrations/airflow/constraints.txt.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { askVitrina, startVitrina, vitrinaCommand } from "./started-vitrina.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const provider = join(root, "integrations", "airflow");
const constraints = join(provider, "constraints.txt");
const venv = join(root, ".cache", "airflow");
const installed = join(venv, "installed");
const program = (name) => join(venv, "bin", name);
const NEEDED = ["apache-airflow", "hatchling", "mypy", "pytest", "pytest-asyncio", "ruff"];

/** What a program prints; undefined when it fails. */
function quietly(command, args) {
  const { status, stdout } = spawnSync(command, args, { stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });
  return status === 0 ? stdout : undefined;
}

/** Undefined when everything is there, or the reason why not. */
function install() {
  const python = process.env.PYTHON ?? "python3";
  const isRecent = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
  if (quietly(python, ["-c", isRecent]) === undefined) return `${python} is not a Python 3.10 or newer with venv`;
  const wanted = createHash("sha256").update(readFileSync(constraints)).digest("hex");
  if (!existsSync(installed) || readFileSync(installed, "utf8") !== wanted) {
    console.log("Installing Airflow (once) …");
    rmSync(venv, { recursive: true, force: true });
    if (quietly(python, ["-m", "venv", venv]) === undefined) return "no virtual environment could be made";
    const pip = ["install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, ...NEEDED];
    if (quietly(program("pip"), pip) === undefined) return "Airflow could not be installed from PyPI";
    writeFileSync(installed, wanted);
  }
  // As a user installs it, and not as a link, which also tests that the package is complete.
  const pip = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", provider];
  return quietly(program("pip"), [...pip, "--force-reinstall"]) === undefined
    ? "the provider could not be installed"
    : undefined;
}

/** Without the settings of this machine's own Airflow, if it has one. */
function airflowEnvironment(home, vitrina, url) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("AIRFLOW"));
  const { hostname: host, port } = new URL(url);
  const key = (role) => askVitrina(vitrina, "key", "create", "--name", `airflow ${role}`, "--role", role);
  const connection = { conn_type: "vitrina", schema: "http", host, port: Number(port), password: key("operator") };
  return {
    ...Object.fromEntries(inherited),
    PATH: `${join(venv, "bin")}:${process.env.PATH}`,
    PYTHONDONTWRITEBYTECODE: "1",
    AIRFLOW_HOME: home,
    AIRFLOW__CORE__LOAD_EXAMPLES: "False",
    AIRFLOW__CORE__DAGS_FOLDER: join(provider, "tests", "dags"),
    AIRFLOW__CORE__TEST_CONNECTION: "Enabled",
    AIRFLOW_CONN_VITRINA_DEFAULT: JSON.stringify(connection),
    VITRINA_TEST_ADMIN_KEY: key("admin"),
    VITRINA_TEST_DATABASE_URL: askVitrina(vitrina, "db-url"),
    VITRINA_TEST_COMMAND: JSON.stringify([process.execPath, vitrinaCommand]),
  };
}

let underWay;

function run(name, args, env) {
  console.log(`== ${name} ${args.join(" ")}`);
  underWay = spawn(program(name), args, { cwd: provider, env, stdio: "inherit" });
  return new Promise((resolve) => underWay.once("exit", (status) => resolve(status === 0)));
}

/** From pytest's own report: what it prints is for people. */
function countsIn(report) {
  const count = (name) => Number(new RegExp(`<testsuite [^>]*${name}="(\\d+)"`).exec(report)?.[1] ?? 0);
  const failed = count("failures") + count("errors");
  return { passed: count("tests") - failed - count("skipped"), failed, skipped: count("skipped") };
}

const missing = install();
if (missing !== undefined) {
  console.log(`The Airflow suite was not run: ${missing}.`);
  process.exit(0);
}
// Ctrl-C reaches the programs started here, too; then everything below ends by itself, and is cleared away.
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => underWay?.kill("SIGTERM"));
const folder = mkdtempSync(join(tmpdir(), "vitrina-airflow-"));
const total = { passed: 0, failed: 0, skipped: 0 };
try {
  const linters = [
    ["ruff", ["check", "--no-cache", "."]],
    ["ruff", ["format", "--no-cache", "--check", "."]],
    ["mypy", ["--cache-dir", join(folder, "mypy"), "src"]],
  ];
  for (const [name, args] of linters) if (!(await run(name, args, process.env))) total.failed += 1;
  const { url, stop } = await startVitrina(folder);
  try {
    const env = airflowEnvironment(join(folder, "airflow"), folder, url);
    const report = join(folder, "report.xml");
    const isPassed =
      (await run("airflow", ["db", "migrate"], env)) &&
      (await run("pytest", [`--junit-xml=${report}`, ...process.argv.slice(2)], env));
    const counts = countsIn(existsSync(report) ? readFileSync(report, "utf8") : "");
    total.passed += counts.passed;
    total.failed += counts.failed || (isPassed ? 0 : 1);
    total.skipped += counts.skipped;
  } finally {
    await stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`airflow: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
