import type { Command } from "commander";
import { type Cli, withCli } from "../cli.ts";
import { requireYes } from "../confirm.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { StatusAnswer } from "../follow-run.ts";
import { interruptible, poll } from "../poll.ts";
import { pipelineTable } from "./pipelines.ts";
import { statusTable } from "./status.ts";

export function addPauseCommand(program: Command): void {
  program
    .command("pause")
    .argument("<name>", "name or id of the pipeline")
    .description("ask a running pipeline to stop after its current batch; vitrina run continues it from there")
    .option("--wait", "wait until it has stopped")
    .action(withCli(pause));
}

async function pause(cli: Cli, id: string, { wait = false }: { wait?: boolean }): Promise<void> {
  const params = { id };
  const pipeline = await cli.api.request("pausePipeline", { params });
  if (!wait) return cli.show(pipeline, () => pipelineTable([pipeline]));
  const status = await interruptible(cli.terminal, "The pause is still requested.", () =>
    poll(cli.terminal.say, {
      look: () => cli.api.request("getPipelineStatus", { params }),
      isOver: (seen) => seen.status !== "PAUSE_REQUESTED",
    }),
  );
  cli.show(status, () => statusTable([status]));
  requirePaused(status);
}

function requirePaused({ name, status, last_run: run }: StatusAnswer): void {
  if (status === "PAUSED") return;
  const why = status === "FAILED" ? (run?.error ?? undefined) : undefined;
  throw new CliFailure(EXIT.failed, `${name} was not paused: it is ${status}.`, why === undefined ? [] : [why]);
}

interface CancelOptions {
  readonly yes?: boolean;
  readonly wait?: boolean;
}

export function addCancelCommand(program: Command): void {
  program
    .command("cancel")
    .argument("<name>", "name or id of the pipeline")
    .description("withdraw a requested run, or end the current one; the pipeline returns to its earlier status")
    .option("--yes", "do not ask before ending a run")
    .option("--wait", "wait until it has ended")
    .action(withCli(cancel));
}

async function cancel(cli: Cli, id: string, { yes = false, wait = false }: CancelOptions): Promise<void> {
  const params = { id };
  if (!yes) await confirmIfRunning(cli, id);
  const pipeline = await cli.api.request("cancelPipeline", { params });
  if (!wait) return cli.show(pipeline, () => pipelineTable([pipeline]));
  const { run_request } = pipeline;
  const status = await interruptible(cli.terminal, "The cancellation is still requested.", () =>
    poll(cli.terminal.say, {
      look: () => cli.api.request("getPipelineStatus", { params, query: { run_request } }),
      isOver: ({ over }) => over,
    }),
  );
  cli.show(status, () => statusTable([status]));
  if (pipeline.status !== "CANCEL_REQUESTED" || status.last_run?.status === "CANCELLED") return;
  throw new CliFailure(EXIT.failed, `${pipeline.name} ended before it could be cancelled: ${status.last_run?.status}.`);
}

/** A request that no runner has taken is withdrawn without asking: no work is lost. */
async function confirmIfRunning(cli: Cli, id: string): Promise<void> {
  const { name, status, last_run: run } = await cli.api.request("getPipelineStatus", { params: { id } });
  if (status !== "RUNNING" && status !== "PAUSE_REQUESTED") return;
  const meaning =
    run?.kind === "restore"
      ? `The previous index of ${name} does not come back, unless it has already.`
      : `The run of ${name} ends without its last batch; vitrina run ${name} continues it.`;
  await requireYes(cli.terminal, meaning);
}
