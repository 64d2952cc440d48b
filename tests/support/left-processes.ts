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

/** Records a process group started by a shell: the shell itself is not a Vitrina process. */
export function noteProcessGroup(pid: number | undefined): void {
  if (pid !== undefined) noteProcess(-pid);
}

/** The id may belong to another process by now, so the command is checked, too. */
export function endLeftProcesses(processList: string): void {
  const noted = new Set(readFileSync(processList, "utf8").split("\n").filter(Boolean).map(Number));
  const { stdout } = spawnSync("ps", ["-eo", "pid=,pgid=,command="], { encoding: "utf8" });
  const left = stdout.split("\n").flatMap((line) => {
    const [pid = 0, group = 0] = line.trim().split(/\s+/).map(Number);
    return line.includes("bin/vitrina.mjs") && (noted.has(pid) || noted.has(-group)) ? [pid] : [];
  });
  // Asked first: only the program itself stops the PostgreSQL that it has started.
  for (const pid of left) signal(pid, "SIGTERM");
  for (let tries = 0; tries < 300 && left.some(isAlive); tries += 1) spawnSync("sleep", ["0.1"]);
  for (const pid of left) signal(pid, "SIGKILL");
  if (left.length > 0) console.log(`Ended what the tests had left behind: ${left.join(", ")}.`);
  rmSync(processList, { force: true });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
