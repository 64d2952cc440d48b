import { CommanderError } from "commander";
import type { Output } from "./host.ts";
import { printableLines } from "./terminal-text.ts";

/** What a script can decide by. */
export const EXIT = {
  ok: 0,
  failed: 1,
  unreachable: 3,
  notAllowed: 4,
  /** As sysexits.h has it. */
  usage: 64,
  /** 128 + SIGINT, as shells count. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command. Its lines are for a person: a sentence, then what helps. */
export class CliFailure extends Error {
  readonly exitCode: ExitCode;
  readonly lines: readonly string[];

  constructor(exitCode: ExitCode, sentence: string, lines: readonly string[] = [], cause?: unknown) {
    super(sentence, { cause });
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** Nothing answers, or not like the API; it may be there again in a moment. */
export class ApiUnreachable extends CliFailure {
  constructor(sentence: string, cause?: unknown) {
    const hint =
      "Start it with npm start or vitrina api, or give its address: --api http://host:port, or VITRINA_API_URL.";
    super(EXIT.unreachable, sentence, [hint], cause);
  }
}

/** Says on standard error what went wrong; undefined where the error is not one of the command line. */
export function reportFailure(error: unknown, stderr: Output): ExitCode | undefined {
  // Commander has said it already; asking for help or the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (!(error instanceof CliFailure)) return undefined;
  stderr.write(`${printableLines(`vitrina: ${[error.message, ...error.lines].join("\n  ")}`)}\n`);
  return error.exitCode;
}
