import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { build } from "vite";
import type { EmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import type { HostOrder, HostReport } from "./embedded-postgres-host.ts";

export const isRoot = process.getuid?.() === 0;
export const nodeModules = fileURLToPath(new URL("../../node_modules", import.meta.url));

/** A space and a letter beyond ASCII in the name: both have broken launchers before. */
export async function makeFolder(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), "vitrina embedded ü-")));
}

/** Compiles the host program, because Node.js 20 does not run TypeScript. Returns its folder; the file is `host.js`. */
export async function compileHost(): Promise<string> {
  const outDir = await makeFolder();
  await chmod(outDir, 0o755);
  await build({
    configFile: false,
    logLevel: "error",
    build: {
      ssr: fileURLToPath(new URL("embedded-postgres-host.ts", import.meta.url)),
      outDir: join(outDir, "js"),
      rollupOptions: { output: { entryFileNames: "host.mjs" } },
    },
  });
  await symlink(nodeModules, join(outDir, "node_modules"));
  await chmod(join(outDir, "js"), 0o755);
  await chmod(join(outDir, "js", "host.mjs"), 0o644);
  return outDir;
}

export const NOBODY = { uid: 65_534, gid: 65_534 };

/** False below a closed folder, such as a clone in root's home, and for whoever may not become another user. */
export function nobodyCanRunHost(): boolean {
  const probe = ["-e", "require(process.argv[1])", join(nodeModules, "pg")];
  return isRoot && spawnSync(process.execPath, probe, { ...NOBODY, cwd: "/" }).status === 0;
}

export class Host {
  readonly process: ChildProcess;
  private readonly reports: AsyncIterator<string>;

  constructor(
    folder: string,
    order: HostOrder,
    spawnOptions: { uid?: number; gid?: number; env?: NodeJS.ProcessEnv } = {},
  ) {
    this.process = spawn(process.execPath, [join(folder, "js", "host.mjs"), JSON.stringify(order)], {
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
      ...spawnOptions,
    });
    if (!this.process.stdout) throw new Error("the host has no output");
    this.reports = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async nextReport(): Promise<HostReport> {
    const line = await this.reports.next();
    return line.done ? {} : (JSON.parse(line.value) as HostReport);
  }

  /** To the process alone, or to its group, as a terminal does with Ctrl-C. */
  signal(signal: NodeJS.Signals, to: "process" | "group" = "process"): void {
    const pid = this.process.pid ?? Number.NaN;
    process.kill(to === "group" ? -pid : pid, signal);
  }

  async exited(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
  }
}

export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

export async function withServer<T>(
  starting: Promise<EmbeddedPostgres>,
  use: (server: EmbeddedPostgres) => Promise<T>,
): Promise<T> {
  const server = await starting;
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

/** The process id that the server of a data folder wrote down. */
export async function serverPid(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(join(dataDir, "postgres", "postmaster.pid"), "utf8"), 10);
}

/** Ours or not; a zombie does not count. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")) !== "";
}

export async function userOf(pid: number): Promise<number> {
  return Number(/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** What `ps` could show anybody about any process, and what of its environment we may read. */
export async function visibleProcessTexts(): Promise<string> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const files = pids.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return (await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")))).join("\n");
}

export async function eventually(condition: () => Promise<boolean>, timeoutMs = 240_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`did not happen within ${timeoutMs} ms: ${condition}`);
    await sleep(10);
  }
}

export async function removeFolders(folders: Iterable<string>): Promise<void> {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
}
