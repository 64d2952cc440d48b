import type { Host } from "../cli/host.ts";
import { reportFailure } from "../cli/report-failure.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { buildProgram } from "./program.ts";

/** One command from its arguments to its exit code. */
export async function runProgram(args: readonly string[], host: Host): Promise<void> {
  const program = buildProgram(host);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    host.exitCode = reportFailure(error, host.stderr) ?? (await reportError(error, host));
  }
}

async function reportError(error: unknown, { stderr }: Host): Promise<number> {
  const { redact } = await import("../observability/log.ts");
  const hint = error instanceof VitrinaError ? `\n  ${error.hint}` : "";
  const text = error instanceof VitrinaError ? error.message : error instanceof Error ? error.stack : String(error);
  stderr.write(`${redact(`vitrina: ${text}${hint}`)}\n`);
  return 1;
}
