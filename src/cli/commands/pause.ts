import type { Command } from "commander";
import type { Answer } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { interruptible, poll } from "../poll.ts";
import { pipelineTable } from "./pipelines.ts";
import { statusTable } from "./status.ts";

export function addPauseCommand(program: Command): void {
  program
    .command("pause")
    .argument("<name>", "name or id of the pipeline")
    .description("ask a running pipeline to stop after its batch; vitrina run continues it there")
    .option("--wait", "wait until it has stopped")
    .action(withCli(pause));
}

async function pause(cli: Cli, id: string, { wait = false }: { wait?: boolean }): Promise<void> {
  const params = { id };
  const pipeline = await cli.api.request("pausePipeline", { params });
  if (!wait) return cli.show(pipeline, () => pipelineTable([pipeline]));
  const status = await interruptible(cli.terminal, "The pause stays asked for.", () =>
    poll(cli.terminal.say, {
      look: () => cli.api.request("getPipelineStatus", { params }),
      isOver: (seen) => seen.status !== "PAUSE_REQUESTED",
    }),
  );
  cli.show(status, () => statusTable([status]));
  requirePaused(status);
}

function requirePaused({ name, status, last_run: run }: Answer<"getPipelineStatus">): void {
  if (status === "PAUSED") return;
  const why = status === "FAILED" ? (run?.error ?? undefined) : undefined;
  throw new CliFailure(EXIT.failed, `${name} was not paused: it is ${status}.`, why === undefined ? [] : [why]);
}
