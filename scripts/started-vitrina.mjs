// The whole product on an embedded PostgreSQL with the demo and a login, for the suites that test it from outside.
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const vitrinaCommand = join(dirname(dirname(fileURLToPath(import.meta.url))), "bin", "vitrina.mjs");

/** Ready when it resolves. Its data are in the folder, and the API listens on a free port. */
export async function startVitrina(folder) {
  const env = {
    ...process.env,
    API_PORT: "0",
    API_AUTH: "required",
    API_RATE_LIMIT_PER_MINUTE: "0",
    API_FAILED_LOGINS_PER_MINUTE: "0",
  };
  const child = spawn(process.execPath, [vitrinaCommand, "start"], { cwd: folder, env });
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
  return { url, stop: () => new Promise((resolve) => child.once("exit", resolve) && child.kill("SIGTERM")) };
}

/** What a command of Vitrina prints, such as a new key. */
export function askVitrina(folder, ...args) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [vitrinaCommand, ...args], { cwd: folder });
  if (status !== 0) throw new Error(`vitrina ${args.join(" ")} failed: ${stderr}`);
  return stdout.toString().trim();
}
