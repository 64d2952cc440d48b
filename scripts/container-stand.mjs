import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";

/** A stand of deploy/docker-compose.yml for a test: its own project, image, secrets, ports and volumes. */

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const MOST_OUTPUT = 64 * 1024 * 1024;

function succeeds(command, ...args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** The container engine that answers, and how to call its compose; `undefined` if there is none. */
export function findEngine() {
  const engine = process.env.DOCKER ?? "docker";
  if (!succeeds(engine, "info")) return undefined;
  if (succeeds(engine, "compose", "version")) return { engine, compose: [engine, "compose"] };
  return succeeds("docker-compose", "version") ? { engine, compose: ["docker-compose"] } : undefined;
}

function output(command, args, options) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: "utf8",
    maxBuffer: MOST_OUTPUT,
    ...options,
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")} failed: ${error?.message ?? stderr.slice(-3000)}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function settings(project) {
  const sample = parseEnv(readFileSync(join(root, "deploy", ".env.sample"), "utf8"));
  const filled = Object.entries(sample).map(([name, value]) => [name, value || randomBytes(24).toString("hex")]);
  const ports = { API_PORT: await freePort(), DB_PORT: await freePort(), ELASTICSEARCH_PORT: await freePort() };
  return { ...Object.fromEntries(filled), ...ports, COMPOSE_PROJECT_NAME: project, VITRINA_IMAGE: `${project}-image` };
}

export async function openStand({ engine, compose }) {
  const project = `vitrina-test-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "vitrina-stand-"));
  const env = await settings(project);
  const file = join(folder, "env");
  const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(file, lines.join(""), { mode: 0o600 });
  const [program, ...first] = compose;
  const common = [...first, "-f", join(root, "deploy", "docker-compose.yml"), "--env-file", file, "-p", project];
  const inCompose = (...args) => output(program, [...common, ...args]);
  const inEngine = (...args) => output(engine, args);

  return {
    image: env.VITRINA_IMAGE,
    secrets: Object.keys(env)
      .filter((name) => name.endsWith("_PASSWORD"))
      .map((name) => env[name]),
    engine: inEngine,
    compose: inCompose,
    try: (...args) => spawnSync(engine, args, { stdio: "ignore" }).status,
    containers: (service) => inCompose("ps", "-q", "-a", service).split("\n").filter(Boolean),
    health: (id) => JSON.parse(inEngine("inspect", id))[0].State.Health?.Status,
    demo: () =>
      output("sh", [join(root, "deploy", "demo.sh")], {
        env: { ...process.env, DOCKER_COMPOSE: [program, ...common].join(" ") },
      }),
    /** Asks the API with a key that exists only here. */
    api: () => {
      const key = inCompose(
        "exec",
        "-T",
        "etl_api",
        "vitrina",
        "key",
        "create",
        "--name",
        "test",
        "--role",
        "editor",
      ).trim();
      return async (method, path, body) => {
        const response = await fetch(`http://127.0.0.1:${env.API_PORT}/api/v1${path}`, {
          method,
          headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
          ...(body && { body: JSON.stringify(body) }),
        });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return response.json();
      };
    },
    lastLogs: () => spawnSync(program, [...common, "logs", "--tail=30"], { encoding: "utf8" }).stdout,
    remove: () => {
      spawnSync(program, [...common, "down", "--volumes", "--timeout", "5"], { stdio: "ignore" });
      spawnSync(engine, ["image", "rm", env.VITRINA_IMAGE], { stdio: "ignore" });
      rmSync(folder, { recursive: true });
    },
  };
}
