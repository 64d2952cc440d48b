// npm run test:api [-- schemathesis arguments]: sends the API everything its OpenAPI document allows, and much that it
// does not, as each role. Answers must fit their schemas, and nothing may end in a 5xx. Needs Python 3.10 or newer;
// schemathesis is installed once, into .cache.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { askVitrina, startVitrina } from "./started-vitrina.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const venv = join(root, ".cache", "schemathesis");
const SCHEMATHESIS = "schemathesis==4.32.5";
const REVOKE = "revokeKey";
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

/**
 * A request may fit its schema and still be refused with 422: a query that is not SQL, a page mark that no page returned.
 * JSON Schema cannot say that. Validate answers 200 with what is wrong, also with options that the kind of target does not
 * have; and the preview of a pipeline shows the rows of its query, whatever is said of the target.
 */
const SETTINGS = `
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "412", "422"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]

[[operations]]
include-path-regex = "/(validate|pipelines/[^/]+/preview)$"

[operations.checks.negative_data_rejection]
expected-statuses = ["200", "400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]
`;

const st = installSchemathesis();
const folder = mkdtempSync(join(tmpdir(), "vitrina-fuzz-"));
writeFileSync(join(folder, "schemathesis.toml"), SETTINGS);
let failed = [];
try {
  const { url, stop } = await startVitrina(folder);
  try {
    failed = ROLES.filter((role) => {
      console.log(`\n== as ${role}`);
      const args = ["run", `${url}/openapi.json`, "--checks", "all", "--exclude-path", "/api/v1/events"];
      const more = process.argv.length > 2 ? process.argv.slice(2) : ["--max-examples", "20"];
      const asRole = (...which) => {
        const key = askVitrina(folder, "key", "create", "--name", `fuzz ${role}`, "--role", role);
        return run(st, [...args, ...which, ...more, "--header", `Authorization: Bearer ${key}`], { cwd: folder }) === 0;
      };
      // An admin who revokes the key in use is answered 401 from then on, and nothing more is tried. So that comes last.
      const passed = [asRole("--exclude-operation-id", REVOKE), asRole("--include-operation-id", REVOKE)];
      return passed.includes(false);
    });
  } finally {
    await stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed.length === 0 ? "\nAll roles passed." : `\nFailed as ${failed.join(", ")}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
