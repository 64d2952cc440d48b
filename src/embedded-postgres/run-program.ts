import { type SpawnOptions, spawn } from "node:child_process";
import type { ServerUser } from "./server-user.ts";

/**
 * What every PostgreSQL program is started with. The environment is our own: a caller's PGDATA, PGOPTIONS, LC_ALL or
 * LD_LIBRARY_PATH must not change the server, and LC_ALL=C keeps the messages in the language we read. Everybody
 * may enter the working folder.
 */
export function programOptions(user: ServerUser | undefined): SpawnOptions {
  return { cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" }, ...user };
}

export interface ProgramResult {
  readonly succeeded: boolean;
  readonly output: string;
}

/** Runs a program to its end. A program that cannot even start is a failure like any other. */
export function runProgram(
  file: string,
  args: readonly string[],
  user: ServerUser | undefined,
  fds: readonly number[] = [],
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    let output = "";
    const child = spawn(file, args, { ...programOptions(user), stdio: ["ignore", "pipe", "pipe", ...fds] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.on("error", (error) => resolve({ succeeded: false, output: error.message }));
    child.on("close", (code) => resolve({ succeeded: code === 0, output }));
  });
}
