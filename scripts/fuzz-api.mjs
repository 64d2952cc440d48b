// npm run test:api [-- schemathesis arguments]: asks the API everything its OpenAPI document allows, and much that it
// does not, as each role. Answers must fit their schemas, and nothing may end in a 5xx. Needs Python 3.10 or newer;
// schemathesis is installed once, into .cache.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const vitrina = join(root, "bin", "vitrina.mjs");
const venv = join(root, ".cache", "schemathesis");
const SCHEMATHESIS = "schemathesis==4.32.5";
const ROLES = ["viewer", "operator", "editor", "admin"];

function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: "inherit", ...options });
  if (error) throw new Error(`${command} cannot be started: ${error.message}`);
  return status;
}

function installSchemathesis() {
  const program = join(venv, "bin", "st");
  if (existsSync(program)) return program;
  console.log("Installing schemathesis (once) …");
  const isDone =
    run(process.env.PYTHON ?? "python3", ["-m", "venv", venv]) === 0 &&
    run(join(venv, "bin", "pip"), ["install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS]) === 0;
  if (!isDone) throw new Error("schemathesis could not be installed; the message is above.");
  return program;
}

/** The whole product on an embedded PostgreSQL, with the demo, so that there is something to ask about. */
async function start(folder) {
  const env = {
    ...process.env,
    API_PORT: "0",
    API_AUTH: "required",
    API_RATE_LIMIT_PER_MINUTE: "0",
    API_FAILED_LOGINS_PER_MINUTE: "0",
  };
  const child = spawn(process.execPath, [vitrina, "start"], { cwd: folder, env });
  let output = "";
  const url = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk;
      const found = /API {8}(http:\/\/[^/\s]+)/.exec(output);
      if (found && output.includes("Ctrl-C")) resolve(found[1]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => reject(new Error(`Vitrina did not start:\n${output}`)));
  });
  return { url, child, stop: () => new Promise((resolve) => child.once("exit", resolve) && child.kill("SIGTERM")) };
}

function createKey(folder, role) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [vitrina, "key", "create", "--name", `fuzz ${role}`, "--role", role],
    { cwd: folder },
  );
  if (status !== 0) throw new Error(`No key for ${role}: ${stderr}`);
  return stdout.toString().trim();
}

/**
 * A request may fit its schema and still be refused with 422: a query that is no SQL, a page mark that no page gave.
 * JSON Schema cannot say that.
 */
const SETTINGS = `
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "412", "422"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]
`;

const st = installSchemathesis();
const folder = mkdtempSync(join(tmpdir(), "vitrina-fuzz-"));
writeFileSync(join(folder, "schemathesis.toml"), SETTINGS);
let failed = [];
try {
  const { url, stop } = await start(folder);
  try {
    failed = ROLES.filter((role) => {
      console.log(`\n== as ${role}`);
      const args = ["run", `${url}/openapi.json`, "--checks", "all", "--exclude-path", "/api/v1/events"];
      const more = process.argv.length > 2 ? process.argv.slice(2) : ["--max-examples", "20"];
      const headers = ["--header", `Authorization: Bearer ${createKey(folder, role)}`];
      return run(st, [...args, ...more, ...headers], { cwd: folder }) !== 0;
    });
  } finally {
    await stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed.length === 0 ? "\nAll roles passed." : `\nFailed as ${failed.join(", ")}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
