import { type Command, Option } from "commander";
import { plural } from "../../domain/counted.ts";
import { type Cli, withCli } from "../cli.ts";
import { requireYes } from "../confirm.ts";
import { limitOf } from "./runs.ts";

interface RejectsOptions {
  readonly retry?: boolean;
  readonly discard?: boolean;
  readonly yes?: boolean;
  readonly limit: number;
}

export function addRejectsCommand(program: Command): void {
  program
    .command("rejects")
    .argument("<name>", "name or id of the pipeline")
    .description("list the rows that the target refused, newest first")
    .addOption(new Option("--retry", "try all of them again, in a new run").conflicts("discard"))
    .option("--discard", "discard all of them; the target stays as it is")
    .option("-y, --yes", "do not ask before discarding")
    .option("--limit <number>", "list at most this many, up to 200", limitOf, 20)
    .action(withCli(rejects));
}

async function rejects(cli: Cli, id: string, options: RejectsOptions): Promise<void> {
  if (options.retry === true) return retry(cli, id);
  if (options.discard === true) return discard(cli, id, options.yes ?? false);
  const page = await cli.api.request("listRejects", { params: { id }, query: { limit: options.limit } });
  cli.show(page, () => ({
    columns: [{ title: "ID", align: "right" }, { title: "STATE" }, { title: "KEY" }, { title: "ERROR" }],
    rows: page.items.map((reject) => [
      String(reject.id),
      reject.state,
      JSON.stringify(reject.key ?? reject.row),
      reject.error,
    ]),
    whenEmpty: "The target refused no rows.",
  }));
  if (page.next !== null && !cli.isJson) cli.terminal.say("There are more; --limit shows up to 200.");
}

async function retry(cli: Cli, id: string): Promise<void> {
  const answer = await cli.api.request("retryRejects", { params: { id }, body: {} });
  const { retried, pipeline_status: status } = answer;
  cli.show(answer, () => `${plural(retried, "row")} will be tried again; the pipeline is ${status}.`);
}

async function discard(cli: Cli, id: string, yes: boolean): Promise<void> {
  const meaning = `All rows that the target of ${id} refused will be discarded and cannot be tried again.`;
  if (!yes) await requireYes(cli.terminal, meaning);
  const answer = await cli.api.request("discardRejects", { params: { id }, body: { all: true } });
  cli.show(answer, () => `${plural(answer.discarded, "row")} forgotten.`);
}
