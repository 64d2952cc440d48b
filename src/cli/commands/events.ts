import type { Command } from "commander";
import type { Pipeline, Run } from "../api-types.ts";
import { type Cli, withCli } from "../cli.ts";
import { type ApiEvent, watchEvents } from "../events.ts";
import { runText } from "../run-progress.ts";
import { printable } from "../text-width.ts";

export function addEventsCommand(program: Command): void {
  program
    .command("events")
    .argument("[name]", "name or id of a pipeline; without it all of them")
    .description("show what happens as it happens, until Ctrl-C; with -o json one document per line")
    .action(withCli(events));
}

async function events(cli: Cli, pipeline: string | undefined): Promise<void> {
  for await (const event of watchEvents(cli.api, pipeline, cli.terminal.say)) {
    const text = cli.isJson ? JSON.stringify(event) : eventText(event);
    if (text !== undefined) cli.terminal.print(printable(text));
  }
}

function eventText({ name, data }: ApiEvent): string | undefined {
  switch (name) {
    case "pipeline": {
      const pipeline = data as Pick<Pipeline, "name" | "status">;
      return `${pipeline.name}: is ${pipeline.status}`;
    }
    case "run": {
      const run = data as Run;
      return `${run.pipeline_name}: run ${run.status}  ${runText(run)}`;
    }
    case "reset":
      return "Some events may be missing.";
    default:
      return undefined;
  }
}
