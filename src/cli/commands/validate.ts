import type { Command } from "commander";
import type { Answer } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { FILE_HELP, readConfigurations } from "../configuration-file.ts";
import { CliFailure, EXIT, type ExitCode } from "../failure.ts";
import { printable } from "../text-width.ts";
import { count } from "../words.ts";

type Validation = Answer<"validatePipeline">;

export function addValidateCommand(program: Command): void {
  program
    .command("validate")
    .argument("[name]", "name or id of a pipeline")
    .description("check a pipeline, or a configuration in a file, without running it; fails when it is not valid")
    .option("-f, --file <file>", FILE_HELP)
    .action(withCli(validate));
}

async function validate(cli: Cli, id: string | undefined, { file }: { file?: string }): Promise<ExitCode> {
  if ((id === undefined) === (file === undefined)) {
    throw new CliFailure(EXIT.usage, "Name either a pipeline, or a file with --file.");
  }
  const results =
    file === undefined
      ? [{ name: String(id), answer: await cli.api.request("validatePipeline", { params: { id: String(id) } }) }]
      : await validateFile(cli, file);
  const answers = results.map(({ answer }) => answer);
  cli.show(answers.length === 1 ? answers[0] : answers, () =>
    results.map(({ name, answer }) => validationText(name, answer)).join("\n"),
  );
  return answers.every(({ valid }) => valid) ? EXIT.ok : EXIT.failed;
}

async function validateFile(cli: Cli, file: string): Promise<{ name: string; answer: Validation }[]> {
  const results = [];
  for (const body of readConfigurations(file)) {
    results.push({ name: body.name, answer: await cli.api.request("validateConfiguration", { body }) });
  }
  return results;
}

function validationText(name: string, { valid, problems, reading, writing, estimated_rows }: Validation): string {
  const found = problems.flatMap(({ severity, pointer, line, column, message, hint }) => {
    const place = [pointer, line && `line ${line}`, column && `column ${column}`].filter(Boolean).join(", ");
    return [`  ${severity}${place === "" ? "" : ` at ${place}`}: ${message}`, `    ${hint}`];
  });
  const plan = [
    estimated_rows === null ? undefined : `about ${count(estimated_rows)} rows`,
    reading?.data_path && `read by ${reading.data_path}`,
    writing && `written by ${writing.strategy}`,
  ].filter(Boolean);
  const outcome = `${name} is ${valid ? "valid" : "not valid"}${plan.length === 0 ? "" : `: ${plan.join(", ")}`}.`;
  return [outcome, ...found].map(printable).join("\n");
}
