import type { Command } from "commander";
import { type Cli, withCli } from "../cli.ts";
import { localTime } from "../words.ts";
import { limitOf } from "./runs.ts";

interface AuditOptions {
  readonly limit: number;
  readonly actor?: string;
  readonly action?: string;
}

export function addAuditCommand(program: Command): void {
  program
    .command("audit")
    .argument("[object]", "name or id of what was changed (default: everything)")
    .description("list who changed what, and who was refused, newest first; needs the role admin")
    .option("--actor <actor>", "only what this actor did, such as key:ci")
    .option("--action <operation>", "only this operation, such as updatePipeline")
    .option("--limit <number>", "at most this many, up to 200", limitOf, 20)
    .action(withCli(audit));
}

async function audit(cli: Cli, object: string | undefined, options: AuditOptions): Promise<void> {
  const query = { ...options, ...(object !== undefined && { object }) };
  const page = await cli.api.request("listAudit", { query });
  cli.show(page, () => ({
    columns: [{ title: "AT" }, { title: "ACTOR" }, { title: "ACTION" }, { title: "OBJECT" }, { title: "OUTCOME" }],
    rows: page.items.map(({ at, actor, action, object: id, object_name, outcome }) => [
      localTime(at),
      actor,
      action,
      object_name ?? id ?? "",
      outcome,
    ]),
    whenEmpty: "There are no such entries.",
  }));
  if (page.next !== null && !cli.isJson) cli.terminal.say("There are older entries; --limit shows up to 200.");
}
