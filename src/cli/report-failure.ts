import { CommanderError } from "commander";
import { CliFailure, EXIT, type ExitCode } from "./failure.ts";
import type { Output } from "./host.ts";
import { printableLines } from "./text-width.ts";

/** Says on standard error what went wrong; undefined where the error is not one of the command line. */
export function reportFailure(error: unknown, stderr: Output): ExitCode | undefined {
  // Commander has said it already; asking for help or the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (!(error instanceof CliFailure)) return undefined;
  stderr.write(`${printableLines(`vitrina: ${[error.message, ...error.lines].join("\n  ")}`)}\n`);
  return error.exitCode;
}
