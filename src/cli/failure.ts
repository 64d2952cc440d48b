import { CommanderError } from "commander";
import type { Output } from "./host.ts";
import { printableLines } from "./terminal-text.ts";

/** For scripts to tell outcomes apart. */
export const EXIT = {
  ok: 0,
  failed: 1,
  unreachable: 3,
  notAllowed: 4,
  /** As in sysexits.h. */
  usage: 64,
  /** 128 + SIGINT, as shells count. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command. Its lines are for people: a sentence, then what to do. */
export class CliFailure extends Error {
  readonly exitCode: ExitCode;
  readonly lines: readonly string[];

  constructor(exitCode: ExitCode, sentence: string, lines: readonly string[] = [], cause?: unknown) {
    super(sentence, { cause });
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** Nothing answers, or something that is not the API; it may be back in a moment. */
export class ApiUnreachable extends CliFailure {
  constructor(sentence: string, cause?: unknown) {
    const hint =
      "Start it with npm start or vitrina api, or give its address: --api http://host:port, or VITRINA_API_URL.";
    super(EXIT.unreachable, sentence, [hint], cause);
  }
}

/** Prints what went wrong on standard error; undefined if it is not a CLI error. */
export function reportFailure(error: unknown, stderr: Output): ExitCode | undefined {
  // Commander has already printed it; asking for help or the version is not an error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (!(error instanceof CliFailure)) return undefined;
  stderr.write(`${printableLines(`vitrina: ${[error.message, ...error.lines].join("\n  ")}`)}\n`);
  return error.exitCode;
}
