import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type DataDir, errorCode, readIfThere } from "./data-dir.ts";

/** What the server writes about itself into postmaster.pid. */
export interface ServerRecord {
  readonly pid: number;
  readonly port: number;
  readonly isReady: boolean;
}

const STOP_PATIENCE_MS = 10_000;

export async function readServerRecord(dir: DataDir): Promise<ServerRecord | undefined> {
  const lines = (await readIfThere(join(dir.cluster, "postmaster.pid")))?.split("\n");
  if (!lines) return undefined;
  // Lines by PostgreSQL's miscadmin.h: 1 process, 4 port, 8 status. The file grows line by line.
  return { pid: Number(lines[0]), port: Number(lines[3]), isReady: lines[7]?.trim() === "ready" };
}

/** The setting that marks a server as ours on its command line; it has no other effect. */
export function dataDirMark(dir: DataDir): string {
  return `vitrina.data_dir=${dir.root}`;
}

export async function findRunningServer(dir: DataDir): Promise<ServerRecord | undefined> {
  const server = await readServerRecord(dir);
  return server && (await isServerOf(dir, server.pid)) ? server : undefined;
}

/** A process id proves little: it may belong to another program by now. The mark on the command line is proof. */
async function isServerOf(dir: DataDir, pid: number): Promise<boolean> {
  return isProcessId(pid) && (await commandLine(pid)).endsWith(` -c ${dataDirMark(dir)}`);
}

/** A file cut short by a power failure has none; and for `kill`, 0 or less would mean a whole process group. */
const isProcessId = (pid: number): boolean => Number.isInteger(pid) && pid > 0;

/** Empty when there is no such process, or only a zombie. */
async function commandLine(pid: number): Promise<string> {
  try {
    if (process.platform === "linux") {
      return (await readFile(`/proc/${pid}/cmdline`, "utf8")).replace(/\0$/, "").replaceAll("\0", " ");
    }
    const { stdout } = await promisify(execFile)("/bin/ps", ["-ww", "-o", "command=", "-p", String(pid)]);
    return stdout.trimEnd();
  } catch {
    return "";
  }
}

/** Stops the server that an earlier Vitrina left behind when it was killed, and clears its record away. */
export async function stopOrphan(dir: DataDir, log: (line: string) => void): Promise<void> {
  const record = await readServerRecord(dir);
  if (!record) return;
  if (await isServerOf(dir, record.pid)) {
    log(`Stopping the PostgreSQL (process ${record.pid}) that an earlier Vitrina left running`);
    await shutDown(record.pid, () => isServerOf(dir, record.pid));
  } else if (!isProcessId(record.pid) || sendSignal(record.pid, 0)) {
    // PostgreSQL would mistake the other program with this process id for a server on this folder and refuse to start.
    // The record of a dead process stays: PostgreSQL uses it to check whether children of the old server still live.
    await rm(join(dir.cluster, "postmaster.pid"), { force: true });
  }
}

/** Disconnects everyone and shuts down cleanly; a server that cannot is killed. */
export async function shutDown(
  pid: number,
  isRunning: () => boolean | Promise<boolean>,
  patienceMs = STOP_PATIENCE_MS,
): Promise<void> {
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    sendSignal(pid, signal);
    const deadline = Date.now() + patienceMs;
    while (Date.now() < deadline) {
      if (!(await isRunning())) return;
      await sleep(20);
    }
  }
  throw new VitrinaError("EMBEDDED_POSTGRES_FAILED", `The PostgreSQL with the process id ${pid} does not stop.`);
}

/** False when there is no such process. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return false;
    if (errorCode(error) === "EPERM") return true;
    throw error;
  }
}
