import type { Command } from "commander";
import { type Cli, withCli } from "../cli.ts";
import { EXIT, type ExitCode } from "../failure.ts";
import { pipelineTable } from "./pipelines.ts";
import { waitFor } from "./run.ts";

export function addRestorePreviousCommand(program: Command): void {
  program
    .command("restore-previous")
    .argument("<name>", "name or id of a pipeline that builds a search index")
    .description("bring back the index as it was before the last full load")
    .option("--wait", "wait until it is back")
    .action(withCli(restorePrevious));
}

async function restorePrevious(cli: Cli, id: string, { wait = false }: { wait?: boolean }): Promise<ExitCode> {
  const pipeline = await cli.api.request("restorePreviousTarget", { params: { id } });
  if (wait) return (await waitFor(cli, [id], [pipeline])) ? EXIT.ok : EXIT.failed;
  cli.show(pipeline, () => pipelineTable([pipeline]));
  return EXIT.ok;
}
