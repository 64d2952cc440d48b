import { type Command, InvalidArgumentError } from "commander";
import type { Run } from "../api-types.ts";
import { type Cli, type Table, withCli } from "../cli.ts";
import { count, localTime } from "../words.ts";
import { secondsOf } from "./run.ts";

const MOST = 200;

export function addRunsCommand(program: Command): void {
  program
    .command("runs")
    .argument("<name>", "name or id of the pipeline")
    .description("list the runs of a pipeline, newest first")
    .option("--limit <number>", "at most this many, up to 200", limitOf, 20)
    .action(withCli(runs));
}

export function limitOf(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST) return limit;
  throw new InvalidArgumentError(`It is a number from 1 to ${MOST}.`);
}

async function runs(cli: Cli, id: string, { limit }: { limit: number }): Promise<void> {
  const page = await cli.api.request("listRuns", { params: { id }, query: { limit } });
  cli.show(page, () => runTable(page.items));
  if (page.next !== null && !cli.isJson) cli.terminal.say(`There are older ones; --limit shows up to ${MOST}.`);
}

function runTable(items: readonly Run[]): Table {
  return {
    columns: [
      { title: "STARTED" },
      { title: "STATUS" },
      { title: "TRIGGER" },
      { title: "ATTEMPT", align: "right" },
      { title: "VERSION", align: "right" },
      { title: "READ", align: "right" },
      { title: "WRITTEN", align: "right" },
      { title: "DELETED", align: "right" },
      { title: "REJECTED", align: "right" },
      { title: "SECONDS", align: "right" },
      { title: "ERROR" },
    ],
    rows: items.map((run) => [
      localTime(run.started_at),
      run.status,
      run.trigger,
      String(run.attempt),
      String(run.config_version),
      count(run.rows_read),
      count(run.rows_written),
      count(run.rows_deleted),
      count(run.rows_rejected),
      secondsOf(run),
      run.error ?? "",
    ]),
    whenEmpty: "It has never run.",
  };
}
