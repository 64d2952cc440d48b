import { CommanderError } from "commander";
import { CliFailure, EXIT, type ExitCode } from "./failure.ts";
import { printableLines } from "./text-width.ts";

/** Says on standard error what went wrong; undefined where the error is not one of the command line. */
export function reportFailure(error: unknown): ExitCode | undefined {
  // Commander has said it already; asking for help or the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (!(error instanceof CliFailure)) return undefined;
  console.error(printableLines(`vitrina: ${[error.message, ...error.lines].join("\n  ")}`));
  return error.exitCode;
}
