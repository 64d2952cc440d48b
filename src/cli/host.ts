import type { Command } from "commander";
import type { Environment } from "../settings/environment.ts";

/** What a command uses of its process; passed in, so that several commands can run in one process at the same time. */
export interface Host {
  readonly env: Environment;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: Output;
  readonly stderr: Output;
  exitCode?: number | string | null | undefined;
}

export type Output = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

const hosts = new WeakMap<Command, Host>();

export function setHost(program: Command, host: Host): void {
  hosts.set(program, host);
}

/** The host of the program that the command belongs to. */
export function hostOf(command: Command): Host {
  const host = hosts.get(command);
  if (host !== undefined) return host;
  if (command.parent === null) throw new Error(`The command ${command.name()} belongs to no program.`);
  return hostOf(command.parent);
}
