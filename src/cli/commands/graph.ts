import type { Command } from "commander";
import { type Cli, withCli } from "../cli.ts";

export function addGraphCommand(program: Command): void {
  program
    .command("graph")
    .argument("[name]", "a mart or a table, such as analytics.orders (default: all marts)")
    .description("show what each mart is made from, and who reads it")
    .action(withCli(graph));
}

async function graph(cli: Cli, wanted: string | undefined): Promise<void> {
  const answer = await cli.api.request("getGraph");
  const shown = answer.nodes.filter(({ id, kind, name, pipelines }) =>
    wanted === undefined ? kind === "mart" : [id, name, ...pipelines].includes(wanted),
  );
  cli.show(answer, () => ({
    columns: [{ title: "NODE" }, { title: "PIPELINE" }, { title: "MADE FROM" }, { title: "READ BY" }],
    rows: shown.map(({ id, pipelines, reads, read_by }) => [
      id,
      pipelines.join(", "),
      reads.join(", "),
      read_by.join(", "),
    ]),
    whenEmpty: wanted === undefined ? "There are no pipelines." : `No pipeline reads or makes ${wanted}.`,
  }));
  if (!cli.isJson) for (const note of answer.notes) cli.terminal.say(note);
}
