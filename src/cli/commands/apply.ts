import type { Command } from "commander";
import { type Answer, ApiProblem } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { type Configuration, FILE_HELP, readConfigurations } from "../configuration-file.ts";
import { requireYes } from "../confirm.ts";

type Pipeline = Answer<"getPipeline">;

interface Applied {
  readonly done: "created" | "changed" | "unchanged";
  readonly pipeline: Pipeline;
}

export function addApplyCommands(program: Command): void {
  program
    .command("apply")
    .description(
      "create the pipelines of a file, or change those that exist; what the file does not name stays as it is",
    )
    .requiredOption("-f, --file <file>", FILE_HELP)
    .action(withCli(apply));
  program
    .command("delete")
    .argument("<name>", "name or id of the pipeline")
    .description("delete a pipeline with its history; its mart or index keeps its data")
    .option("-y, --yes", "do not ask")
    .action(withCli(deletePipeline));
}

async function apply(cli: Cli, { file }: { file: string }): Promise<void> {
  const applied: Applied[] = [];
  try {
    for (const configuration of readConfigurations(file)) applied.push(await applyOne(cli, configuration));
  } finally {
    // Also when a later one is refused: these are done.
    if (applied.length > 0) cli.show(applied, () => applied.map(tell).join("\n"));
  }
}

async function applyOne({ api }: Cli, configuration: Configuration): Promise<Applied> {
  const existing = await find(api, configuration);
  if (existing === undefined) {
    return { done: "created", pipeline: await api.request("createPipeline", { body: configuration }) };
  }
  const pipeline = await api.request("updatePipeline", { params: { id: existing.id }, body: configuration });
  return { done: pipeline.config_version === existing.config_version ? "unchanged" : "changed", pipeline };
}

/** A configuration without a proper name is left to the API, which says what is wrong with it. */
async function find(api: Cli["api"], configuration: Configuration | null): Promise<Pipeline | undefined> {
  const name: unknown = configuration?.name;
  if (typeof name !== "string" || name === "") return undefined;
  try {
    return await api.request("getPipeline", { params: { id: name } });
  } catch (error) {
    if (error instanceof ApiProblem && error.code === "PIPELINE_NOT_FOUND") return undefined;
    throw error;
  }
}

function tell({ done, pipeline: { name, config_version } }: Applied): string {
  return `${name}: ${done === "unchanged" ? "as it was" : done} (version ${config_version})`;
}

async function deletePipeline(cli: Cli, id: string, { yes = false }: { yes?: boolean }): Promise<void> {
  const { name, target_table } = await cli.api.request("getPipeline", { params: { id } });
  if (!yes) {
    await requireYes(
      cli.terminal,
      `${name} is deleted with its versions, runs and rejects. ${target_table} keeps its data.`,
    );
  }
  await cli.api.request("deletePipeline", { params: { id } });
  cli.terminal.say(`${name} is deleted.`);
}
