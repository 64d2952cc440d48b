import { ApiProblem } from "./api-client.ts";
import type { Cli } from "./cli.ts";
import { CliFailure, EXIT } from "./failure.ts";

/** The API itself says what would happen, and a person says yes to that; a script says --yes beforehand. */
export async function confirmed<T>(
  { terminal }: Cli,
  yes: boolean | undefined,
  request: (confirm: "true" | "false") => Promise<T>,
): Promise<T> {
  if (yes === true) return request("true");
  try {
    return await request("false");
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== "CONFIRMATION_NEEDED") throw error;
    if (terminal.ask === undefined) throw new CliFailure(EXIT.usage, error.message, ["Add --yes to do it."]);
    terminal.say(error.message);
    const reply = await terminal.ask("Do it? [y/N] ");
    if (!/^y(es)?$/i.test(reply.trim())) throw new CliFailure(EXIT.failed, "Nothing was changed.");
    return request("true");
  }
}
