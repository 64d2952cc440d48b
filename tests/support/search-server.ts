import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { chown, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Distribution, fetchDistribution, type SearchServerName } from "../../scripts/search-servers.mjs";
import { freePort } from "../../src/embedded-postgres/free-port.ts";
import { until } from "./until.ts";

/** A server of the suite's own: one node, on loopback, in a temporary folder. */
export interface SearchServer {
  readonly url: string;
  /** As a power failure would. */
  kill(): Promise<void>;
  /** After `kill`, with the same data and on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 180_000;

export async function startSearchServer(name: SearchServerName): Promise<SearchServer> {
  const distribution = await fetchDistribution(name);
  const folder = await mkdtemp(join(tmpdir(), `vitrina-${name}-`));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await cp(join(distribution.folder, "config"), join(folder, "config"), { recursive: true });
  for (const sub of ["data", "logs", "tmp"]) await mkdir(join(folder, sub));
  const file = join(folder, "config", `${distribution.family}.yml`);
  await writeFile(file, settings(distribution, folder, port, await freePort()));
  const user = await serverUser();
  if (user !== undefined) await giveTo(folder, user.uid, user.gid);

  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    child = launch(distribution, folder, user);
    await until(
      `${name} answers`,
      async () => {
        if (child?.exitCode !== null) throw new Error(`${name} did not start:\n${tailOf(folder)}`);
        const response = await fetch(`${url}/_cluster/health?timeout=1s`).catch(() => undefined);
        return response?.ok === true;
      },
      START_TIMEOUT_MS,
    );
  };
  /** The launcher has the server as its child; both are of one process group. */
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    process.kill(-child.pid, signal);
    await gone;
    await until("the port is free", async () => !(await fetch(url).catch(() => undefined)), 60_000);
  };
  const endAtExit = (): void => {
    if (child?.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  };
  process.once("exit", endAtExit);
  await start();
  return {
    url,
    kill: () => end("SIGKILL"),
    restart: start,
    async stop() {
      await end("SIGKILL");
      process.off("exit", endAtExit);
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function settings({ family }: Distribution, folder: string, port: number, transportPort: number): string {
  const lines = {
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "http.port": port,
    "transport.port": transportPort,
    "path.data": join(folder, "data"),
    "path.logs": join(folder, "logs"),
    // The disk of a test machine may be nearly full.
    "cluster.routing.allocation.disk.threshold_enabled": false,
    ...(family === "elasticsearch" && { "xpack.security.enabled": false }),
  };
  return Object.entries(lines)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("");
}

function launch(
  { family, folder: home, javaHome }: Distribution,
  folder: string,
  user: User | undefined,
): ChildProcess {
  const prefix = family === "elasticsearch" ? "ES" : "OPENSEARCH";
  const log = openSync(join(folder, "output.log"), "a");
  return spawn(join(home, "bin", family), [], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      JAVA_HOME: javaHome,
      [`${prefix}_JAVA_HOME`]: javaHome,
      [`${prefix}_JAVA_OPTS`]: "-Xms512m -Xmx512m",
      [`${prefix}_TMPDIR`]: join(folder, "tmp"),
      [`${prefix}_PATH_CONF`]: join(folder, "config"),
    },
    stdio: ["ignore", log, log],
    detached: true,
    ...user,
  });
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** The servers refuse to be root. */
async function serverUser(): Promise<User | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const line = (await readFile("/etc/passwd", "utf8")).split("\n").find((one) => one.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

async function giveTo(folder: string, uid: number, gid: number): Promise<void> {
  await chown(folder, uid, gid);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await giveTo(path, uid, gid);
    else await chown(path, uid, gid);
  }
}

function tailOf(folder: string): string {
  return readFileSync(join(folder, "output.log"), "utf8").slice(-3000);
}
