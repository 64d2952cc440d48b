// The API as a process of its own, and a bare one beside it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../dist/embedded-postgres/free-port.js";

const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));
const BARE = fileURLToPath(new URL("bare-server.mjs", import.meta.url));
const LOOK_EVERY_MS = 100;
const STARTS_WITHIN_MS = 60_000;

export const startApi = (world) => startServer(world, [COMMAND, "api"], "/api/v1/health/ready");

/** Answers the same questions by the same SQL, and does nothing else. */
export const startBareServer = (world) => startServer(world, [BARE], "/ready");

async function startServer(world, program, ready) {
  const port = await freePort();
  const child = spawn(process.execPath, program, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, API_PORT: String(port), ...world.runnerEnvironment },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exited = once(child, "exit");
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
  };
  world.onClose(stop);
  for (const since = performance.now(); !(await answers(`http://127.0.0.1:${port}${ready}`)); ) {
    if (child.exitCode !== null) throw new Error(`A server ended with ${child.exitCode}.`);
    if (performance.now() - since > STARTS_WITHIN_MS) throw new Error("A server did not start.");
    await delay(LOOK_EVERY_MS);
  }
  return { port, pid: child.pid, stop };
}

function answers(url) {
  return new Promise((resolve) => {
    get(url, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    }).once("error", () => resolve(false));
  });
}
