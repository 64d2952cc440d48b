import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { DataDir } from "./data-dir.ts";
import type { CheckedBinaries } from "./postgres-binaries.ts";
import { programOptions } from "./run-program.ts";
import { dataDirMark, readServerRecord, sendSignal, shutDown } from "./running-server.ts";
import { handOver, type ServerUser } from "./server-user.ts";

/** A server that was not stopped cleanly first replays its WAL, which may take a while. */
const READY_TIMEOUT_MS = 120_000;

export interface Launch {
  readonly dir: DataDir;
  readonly binaries: CheckedBinaries;
  readonly user: ServerUser | undefined;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
}

export interface ServerProcess {
  stop(): Promise<void>;
}

/** Starts the server and waits until it takes connections; when it does not, returns what it logged. */
export async function launchServer(launch: Launch): Promise<ServerProcess | { failureLog: string }> {
  const logFile = await open(launch.dir.log, "a+", 0o600);
  try {
    const logStart = (await logFile.stat()).size;
    const child = await spawnServer(launch, logFile.fd);
    const server = superviseServer(child, launch.log);
    if (await becomesReady(child, launch.dir)) return server;
    await server.stop();
    const { size } = await logFile.stat();
    const { buffer } = await logFile.read({ buffer: Buffer.alloc(size - logStart), position: logStart });
    return { failureLog: buffer.toString("utf8") };
  } finally {
    await logFile.close();
  }
}

async function spawnServer(launch: Launch, logFd: number): Promise<ChildProcess> {
  const folder = await handOver(launch.dir.cluster, launch.user);
  try {
    const settings = {
      ...launch.settings,
      // Not for the caller to change: only programs on this machine that have the password get in.
      listen_addresses: "127.0.0.1",
      port: String(launch.port),
      unix_socket_directories: "",
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(launch.binaries.postgres, ["-D", folder.path, ...args, "-c", dataDirMark(launch.dir)], {
      ...programOptions(launch.user),
      stdio: ["ignore", logFd, logFd, ...folder.fds],
      // Its own session: Ctrl-C in the terminal must reach Vitrina only, which stops the server last.
      detached: true,
    });
    await once(child, "spawn");
    return child;
  } finally {
    await folder.close();
  }
}

const isRunning = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;

/** Makes sure that the server ends with this process, however that ends (short of SIGKILL). */
function superviseServer(child: ChildProcess, log: (line: string) => void): ServerProcess {
  const pid = child.pid ?? 0;
  const stopAtExit = () => {
    sendSignal(pid, "SIGINT");
  };
  let stopped: Promise<void> | undefined;
  process.once("exit", stopAtExit);
  child.once("exit", (code, signal) => {
    process.off("exit", stopAtExit);
    if (!stopped) log(`PostgreSQL (process ${pid}) ended by itself (${signal ?? `code ${code}`})`);
  });
  child.unref();
  return {
    stop() {
      stopped ??= isRunning(child) ? shutDown(pid, () => isRunning(child)) : Promise.resolve();
      return stopped;
    },
  };
}

async function becomesReady(child: ChildProcess, dir: DataDir): Promise<boolean> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (isRunning(child) && Date.now() < deadline) {
    const record = await readServerRecord(dir);
    if (record?.pid === child.pid && record?.isReady) return true;
    await sleep(20);
  }
  return false;
}
