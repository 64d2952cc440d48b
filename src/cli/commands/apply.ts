import type { Command } from "commander";
import { plural } from "../../domain/counted.ts";
import { type ApiAnswer, ApiProblem } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { FILE_HELP, readConfigurations, type WrittenConfiguration } from "../configuration-file.ts";
import { requireYes } from "../confirm.ts";
import { CliFailure, EXIT } from "../failure.ts";

type Applied = ApiAnswer<"applyPipelines">["pipelines"][number];

export function addApplyCommands(program: Command): void {
  program
    .command("apply")
    .description(
      "create or change the pipelines described in files, all or none; fields that a file leaves out stay as they are",
    )
    .requiredOption("-f, --file <path...>", FILE_HELP)
    .action(withCli(apply));
  program
    .command("delete")
    .argument("<name>", "name or id of the pipeline")
    .description("delete a pipeline with its history; its mart or index keeps its data")
    .option("-y, --yes", "do not ask")
    .action(withCli(deletePipeline));
}

async function apply(cli: Cli, { file }: { file: readonly string[] }): Promise<void> {
  const written = await readConfigurations(file);
  const body = { pipelines: written.map(({ configuration }) => configuration) };
  const { pipelines } = await cli.api.request("applyPipelines", { body }).catch((error: unknown) => {
    throw error instanceof ApiProblem ? refusal(error, written) : error;
  });
  cli.show(pipelines, () => pipelines.map(tell).join("\n"));
  if (cli.isJson) return;
  for (const { pipeline, warnings } of pipelines) {
    for (const { message, hint } of warnings) cli.terminal.say(`${pipeline.name}: ${message} ${hint}`);
  }
}

/** Every problem with its file, line and pipeline; a refusal of the request as a whole is passed on unchanged. */
function refusal(problem: ApiProblem, written: readonly WrittenConfiguration[]): CliFailure {
  const lines = problem.errors.map(({ pointer, message, line, column }) => {
    const [, place, field = ""] = /^\/pipelines\/(\d+)(.*)$/s.exec(pointer) ?? [];
    const one = place === undefined ? undefined : written[Number(place)];
    if (one === undefined) return `${pointer}: ${message}`;
    const inQuery = line === undefined ? "" : ` (line ${line}${column === undefined ? "" : `, column ${column}`})`;
    return `${one.placeOf(field, line)}: ${one.name}${field === "" ? "" : ` ${field}`}${inQuery}: ${message}`;
  });
  if (lines.length === 0) return problem;
  const sentence = `Nothing was applied: ${plural(lines.length, "problem")}.`;
  return new CliFailure(EXIT.failed, sentence, [...lines, problem.hint], problem);
}

function tell({ done, pipeline: { name, config_version } }: Applied): string {
  return `${name}: ${done} (version ${config_version})`;
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
