import type { Command } from "commander";
import { allPages, type Input } from "../api-client.ts";
import type { Pipeline } from "../api-types.ts";
import { type Cli, type Table, withCli } from "../cli.ts";

type ListFilter = NonNullable<Input<"listPipelines">["query"]>;

export function addPipelineCommands(program: Command): void {
  program
    .command("list")
    .description("list the pipelines")
    .option("--status <status>", "only those with this status")
    .option("--name <beginning>", "only those whose name begins with this")
    .action(withCli(list));
  program
    .command("get")
    .argument("<name>", "name or id of the pipeline")
    .description("show the whole configuration of a pipeline")
    .action(withCli(get));
}

async function list(cli: Cli, filter: Pick<ListFilter, "status" | "name">): Promise<void> {
  const { status, name } = filter;
  const query = { ...(status && { status }), ...(name && { name }) };
  const page = await allPages((part) => cli.api.request("listPipelines", { query: { ...query, ...part } }));
  cli.show(page, () => pipelineTable(page.items));
}

export function pipelineTable(pipelines: readonly Pipeline[]): Table {
  return {
    columns: [
      { title: "NAME" },
      { title: "STATUS" },
      { title: "MODE" },
      { title: "TARGET" },
      { title: "SCHEDULE" },
      { title: "DESCRIPTION" },
    ],
    rows: pipelines.map(({ name, status, enabled, mode, target_table, schedule_interval, description }) => [
      name,
      enabled ? status : `${status} (disabled)`,
      mode,
      target_table,
      schedule_interval ?? "",
      description,
    ]),
    whenEmpty: "There are no pipelines.",
  };
}

async function get(cli: Cli, id: string): Promise<void> {
  const pipeline = await cli.api.request("getPipeline", { params: { id } });
  // A table has no room for a query of many lines; YAML is how people write pipelines anyway.
  const { stringify } = await import("yaml");
  cli.show(pipeline, () => stringify(pipeline, { lineWidth: 0 }).trimEnd());
}
