import { readFile, writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { expect, it } from "vitest";
import { buildProgram } from "../../src/main/program.ts";

const FILE = new URL("../../docs/CLI.md", import.meta.url);
const WIDTH = 100;

const INTRODUCTION = `# Command line

Every command of \`npx vitrina\`, as its \`--help\` shows it. The commands of the first group start Vitrina's parts or work
on its database; those of the second talk to the API, from any machine that can reach it. Data goes to standard output,
messages to standard error.

This page is generated from the program: \`UPDATE_DOCS=1 npx vitest run tests/cli/help-page.test.ts\` updates it.
`;

function helpOf(command: Command): string {
  let text = "";
  const write = (part: string): void => {
    text += part;
  };
  command.configureOutput({ writeOut: write, getOutHelpWidth: () => WIDTH, getOutHasColors: () => false });
  command.outputHelp();
  return text.trimEnd();
}

/** The command itself, and those below it. */
function sections(command: Command, parents: readonly string[] = []): string[] {
  const path = [...parents, command.name()];
  const own = `## ${path.join(" ")}\n\n\`\`\`\n${helpOf(command)}\n\`\`\`\n`;
  return [own, ...command.commands.flatMap((child) => sections(child, path))];
}

it("docs/CLI.md shows the help of every command (UPDATE_DOCS=1 rewrites it)", async () => {
  const page = [INTRODUCTION, ...sections(await buildProgram())].join("\n");
  if (process.env["UPDATE_DOCS"] === "1") await writeFile(FILE, page);
  expect(await readFile(FILE, "utf8")).toBe(page);
});

it("a command that is built alone is the same as among the others", async () => {
  const all = (await buildProgram()).commands;
  for (const command of all) {
    const alone = (await buildProgram(process, command.name())).commands.find((one) => one.name() === command.name());
    expect(alone === undefined ? undefined : sections(alone)).toEqual(sections(command));
  }
});
