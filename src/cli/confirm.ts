import { ApiProblem } from "./api-client.ts";
import type { Cli } from "./cli.ts";
import { CliFailure, EXIT } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** The API says what would happen, and the user confirms it; a script passes --yes. */
export async function confirmed<T>(
  { terminal }: Cli,
  yes: boolean,
  request: (confirm: "true" | "false") => Promise<T>,
): Promise<T> {
  if (yes) return request("true");
  try {
    return await request("false");
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== "CONFIRMATION_NEEDED") throw error;
    await requireYes(terminal, error.message);
    return request("true");
  }
}

/** `meaning` says exactly what will happen. */
export async function requireYes({ ask, say }: Terminal, meaning: string): Promise<void> {
  if (ask === undefined) throw new CliFailure(EXIT.usage, meaning, ["Add --yes to do it."]);
  say(meaning);
  const reply = await ask("Do it? [y/N] ");
  if (!/^y(es)?$/i.test(reply.trim())) throw new CliFailure(EXIT.failed, "Nothing was changed.");
}
