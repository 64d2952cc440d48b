import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** The file in which the processes of the tests are noted. */
    processList: string;
  }
}

/**
 * A test stops what it started. When vitest itself is interrupted, no test gets to do that, and a worker may disappear
 * silently; so every process is recorded, and whatever is left is ended when the whole run is over.
 */
export function noteProcess(pid: number | undefined): void {
  if (pid !== undefined) appendFileSync(inject("processList"), `${pid}\n`);
}

/** The id may belong to another process by now, so the command is checked, too. */
export function endLeftProcesses(processList: string): void {
  const pids = readFileSync(processList, "utf8").split("\n").filter(Boolean).map(Number);
  const isOurs = (pid: number): boolean =>
    spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout?.includes("bin/vitrina.mjs");
  const left = pids.filter(isAlive).filter(isOurs);
  for (const pid of left) process.kill(pid, "SIGKILL");
  if (left.length > 0) console.log(`Ended what the tests had left behind: ${left.join(", ")}.`);
  rmSync(processList, { force: true });
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
