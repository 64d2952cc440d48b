import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { loadCliSettings } from "../settings/cli-settings.ts";
import { ApiClient } from "./api-client.ts";
import { CliFailure, EXIT, type ExitCode } from "./failure.ts";
import { type Host, hostOf } from "./host.ts";
import { openTerminal, type Terminal } from "./terminal.ts";
import { formatTable, type TableColumn } from "./terminal-text.ts";

/** What every command works with. */
export interface Cli {
  readonly api: ApiClient;
  readonly terminal: Terminal;
  readonly isJson: boolean;
  /** With `-o json` the answer itself, otherwise a readable form of it. */
  show(answer: unknown, readable: () => Table | string): void;
}

export interface Table {
  readonly columns: readonly TableColumn[];
  readonly rows: readonly (readonly string[])[];
  /** Printed instead of a table without rows. */
  readonly whenEmpty?: string;
}

export interface GlobalOptions {
  readonly api?: string;
  readonly keyFile?: string;
  readonly output: "table" | "json";
}

type Work<Arguments extends unknown[]> = (cli: Cli, ...given: Arguments) => Promise<ExitCode> | Promise<void>;

/** Makes an action for commander, which passes the arguments, the options and the command itself. */
export function withCli<Arguments extends unknown[]>(work: Work<Arguments>) {
  return async (...given: unknown[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const host = hostOf(command);
    const cli = openCli(command.optsWithGlobals<GlobalOptions>(), host);
    host.exitCode = (await work(cli, ...(given.slice(0, -1) as Arguments))) ?? EXIT.ok;
  };
}

function openCli({ api, keyFile, output }: GlobalOptions, host: Host): Cli {
  const { apiUrl, apiKey, canRedraw } = loadCliSettings(host.env);
  const terminal = openTerminal(host, canRedraw);
  const isJson = output === "json";
  return {
    api: new ApiClient(api ?? apiUrl, keyFile === undefined ? apiKey : readKey(keyFile)),
    terminal,
    isJson,
    show(answer, readable) {
      if (isJson) return terminal.print(JSON.stringify(answer, null, 2));
      const content = readable();
      if (typeof content === "string") terminal.print(content);
      else showTable(terminal, content);
    },
  };
}

function showTable(terminal: Terminal, { columns, rows, whenEmpty = "There are none." }: Table): void {
  if (rows.length === 0) terminal.say(whenEmpty);
  else terminal.print(formatTable(columns, rows, terminal.width));
}

function readKey(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CliFailure(EXIT.usage, `${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new CliFailure(EXIT.usage, `${file} must hold exactly one key and nothing else.`);
}
