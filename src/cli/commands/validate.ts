import type { Command } from "commander";
import { plural } from "../../domain/counted.ts";
import { type ApiAnswer, ApiProblem } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { FILE_HELP, readConfigurations, type WrittenConfiguration } from "../configuration-file.ts";
import { CliFailure, EXIT, type ExitCode } from "../failure.ts";
import { printable } from "../terminal-text.ts";

type ValidationAnswer = ApiAnswer<"validatePipeline">;

export function addValidateCommand(program: Command): void {
  program
    .command("validate")
    .argument("[name]", "name or id of a pipeline")
    .description("check a pipeline, or the configurations in files, without running them; fails if any is not valid")
    .option("-f, --file <path...>", FILE_HELP)
    .action(withCli(validate));
}

interface Result {
  readonly name: string;
  readonly answer: ValidationAnswer;
  readonly placeOf?: WrittenConfiguration["placeOf"];
}

async function validate(cli: Cli, id: string | undefined, { file }: { file?: readonly string[] }): Promise<ExitCode> {
  if ((id === undefined) === (file === undefined)) {
    throw new CliFailure(EXIT.usage, "Give either the name of a pipeline or a file with --file.");
  }
  const results: Result[] = [];
  if (id !== undefined) {
    results.push({ name: id, answer: await cli.api.request("validatePipeline", { params: { id } }) });
  }
  for (const written of file === undefined ? [] : await readConfigurations(file)) {
    results.push({ name: written.name, answer: await validateOne(cli, written), placeOf: written.placeOf });
  }
  const answers = results.map(({ answer }) => answer);
  cli.show(answers.length === 1 ? answers[0] : answers, () => results.map(validationText).join("\n"));
  return answers.every(({ valid }) => valid) ? EXIT.ok : EXIT.failed;
}

/** As apply would leave it: if the pipeline exists, the file's fields override the stored ones. */
async function validateOne({ api }: Cli, { configuration }: WrittenConfiguration): Promise<ValidationAnswer> {
  try {
    const name: unknown = configuration?.name;
    if (typeof name === "string" && (await exists(api, name))) {
      const { id: _, ...body } = configuration;
      return await api.request("validatePipeline", { params: { id: name }, body });
    }
    return await api.request("validateConfiguration", { body: configuration });
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== "INVALID_REQUEST") throw error;
    return notReadable(error);
  }
}

async function exists(api: Cli["api"], id: string): Promise<boolean> {
  try {
    await api.request("getPipeline", { params: { id } });
    return true;
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false;
    throw error;
  }
}

/** A malformed configuration cannot be validated as a whole, but its problems are shown like any others. */
function notReadable({ code, errors, message }: ApiProblem): ValidationAnswer {
  const places = errors.length > 0 ? errors : [{ pointer: "", message }];
  return {
    valid: false,
    problems: places.map((place) => ({ code, severity: "error", hint: "Correct this field.", ...place })),
    columns: null,
    target: null,
    reading: null,
    writing: null,
    unseen_tables: null,
    notes: [],
    estimated_rows: null,
  };
}

function validationText({ name, answer, placeOf }: Result): string {
  const { valid, problems, reading, writing, target, notes, estimated_rows } = answer;
  const found = problems.flatMap(({ severity, pointer, line, column, message, hint }) => {
    const file = placeOf === undefined ? "" : ` (${placeOf(pointer, line)})`;
    const inText = [pointer, line && `line ${line}`, column && `column ${column}`].filter(Boolean).join(", ");
    const place = `${inText}${file}`.trim();
    return [`  ${severity}${place === "" ? "" : ` at ${place}`}: ${message}`, `    ${hint}`];
  });
  const plan = [
    estimated_rows === null ? undefined : `about ${plural(estimated_rows, "row")}`,
    reading?.data_path && `read by ${reading.data_path}`,
    writing && `written by ${writing.strategy}`,
  ].filter(Boolean);
  const outcome = `${name} is ${valid ? "valid" : "not valid"}${plan.length === 0 ? "" : `: ${plan.join(", ")}`}.`;
  const told = target?.note ? [target.note, ...notes] : notes;
  const leftOpen = valid ? told.map((note) => `  note: ${note}`) : [];
  return [outcome, ...found, ...leftOpen].map(printable).join("\n");
}
