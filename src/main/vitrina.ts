import { reportFailure } from "../cli/report-failure.ts";
import { tolerateClosedPipes } from "../cli/terminal.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { buildProgram } from "./program.ts";

tolerateClosedPipes();
try {
  await buildProgram().parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error) ?? (await reportError(error));
}

async function reportError(error: unknown): Promise<number> {
  const { redact } = await import("../observability/log.ts");
  const hint = error instanceof VitrinaError ? `\n  ${error.hint}` : "";
  const text = error instanceof VitrinaError ? error.message : error instanceof Error ? error.stack : String(error);
  console.error(redact(`vitrina: ${text}${hint}`));
  return 1;
}
