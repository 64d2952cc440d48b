import { type Command, InvalidArgumentError } from "commander";
import { allPages } from "../api-client.ts";
import { type Cli, withCli } from "../cli.ts";
import { diffLines, withoutSameStretches } from "../line-diff.ts";
import { printable } from "../terminal-text.ts";
import { localTime } from "../words.ts";
import { pipelineTable } from "./pipelines.ts";

export function addVersionCommands(program: Command): void {
  program
    .command("versions")
    .argument("<name>", "name or id of the pipeline")
    .description("list the versions of a pipeline's configuration, newest first")
    .action(withCli(versions));
  program
    .command("diff")
    .argument("<name>", "name or id of the pipeline")
    .argument("<version>", "number of a version", versionOf)
    .description("show what a version changed")
    .option("--with <version>", "compare with this version instead of the previous one", versionOf)
    .action(withCli(diff));
  program
    .command("restore")
    .argument("<name>", "name or id of the pipeline")
    .argument("<version>", "number of a version", versionOf)
    .description("make an old version the current configuration, as a new version")
    .action(withCli(restore));
}

function versionOf(text: string): number {
  const version = Number(text);
  if (Number.isInteger(version) && version >= 1) return version;
  throw new InvalidArgumentError("It must be a whole number, 1 or greater.");
}

async function versions(cli: Cli, id: string): Promise<void> {
  const page = await allPages((query) => cli.api.request("listVersions", { params: { id }, query }));
  cli.show(page, () => ({
    columns: [{ title: "VERSION", align: "right" }, { title: "MADE" }, { title: "BY" }, { title: "CHANGED" }],
    rows: page.items.map(({ version, created_at, author, changed_fields }) => [
      String(version),
      localTime(created_at),
      author,
      changed_fields.join(", "),
    ]),
  }));
}

async function diff(cli: Cli, id: string, version: number, options: { with?: number }): Promise<void> {
  const query = { ...(options.with !== undefined && { with: options.with }) };
  const answer = await cli.api.request("diffVersions", { params: { id, version }, query });
  if (answer.changes.length === 0 && !cli.isJson) {
    cli.terminal.say(`Versions ${answer.with} and ${answer.version} do not differ.`);
    return;
  }
  cli.show(answer, () =>
    [`--- version ${answer.with}`, `+++ version ${answer.version}`, ...answer.changes.flatMap(changeLines)]
      .map(printable)
      .join("\n"),
  );
}

/** Each field with its lines, as diff writes them. */
function changeLines({ field, before, after }: { field: string; before: unknown; after: unknown }): string[] {
  const lines = withoutSameStretches(diffLines(valueText(before), valueText(after)));
  return [`@@ ${field} @@`, ...lines.map((line) => (line === "…" ? line : `${line.mark}${line.text}`.trimEnd()))];
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

async function restore(cli: Cli, id: string, version: number): Promise<void> {
  const pipeline = await cli.api.request("restoreVersion", { params: { id, version } });
  cli.show(pipeline, () => pipelineTable([pipeline]));
  cli.terminal.say(`Version ${version} was restored as version ${pipeline.config_version}.`);
}
