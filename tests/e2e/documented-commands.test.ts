import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DocumentedCommand, documentedCommands, shows, showsText } from "../support/documented-commands.ts";
import { type DocumentedShell, openDocumentedShell } from "../support/documented-shell.ts";
import { LONG } from "../support/long.ts";

/**
 * Every command of these pages runs as it is written, in order, as a reader would type them. The numbers are how many
 * there are, so that none falls out of the test unnoticed: those that run, those of them whose answer is compared, and
 * those that cannot run here. `npm test` runs the pages that everybody starts with, `npm run test:soak` all of them.
 */
const PAGES = [
  { file: "README.md", runs: 5, compared: 4, notRun: 2 },
  { file: "docs/TUTORIAL.md", runs: 36, compared: 33, notRun: 0 },
  { file: "docs/API.md", runs: 28, compared: 24, notRun: 0 },
  { file: "docs/guides/add-a-mart.md", runs: 6, compared: 6, notRun: 0 },
  { file: "docs/guides/follow.md", runs: 0, compared: 0, notRun: 7 },
  { file: "docs/guides/back-up.md", runs: 1, compared: 0, notRun: 2 },
  { file: "docs/guides/debug-a-failed-run.md", runs: 7, compared: 6, notRun: 0 },
  { file: "docs/guides/tune-batch-size.md", runs: 1, compared: 0, notRun: 0 },
  { file: "docs/guides/production.md", runs: 0, compared: 0, notRun: 3 },
  { file: "docs/guides/upgrade.md", runs: 0, compared: 0, notRun: 1 },
  { file: "docs/guides/typescript-task.md", runs: 7, compared: 4, notRun: 0 },
  { file: "docs/guides/python-task.md", runs: 8, compared: 5, notRun: 0 },
];

const READ_FIRST = ["README.md", "docs/TUTORIAL.md"];

const textOf = (file: string): Promise<string> => readFile(new URL(`../../${file}`, import.meta.url), "utf8");

const pages = await Promise.all(
  PAGES.map(async (page) => ({ ...page, commands: documentedCommands(await textOf(page.file)) })),
);

/** Pages that do not start Vitrina themselves share one, as a reader would. */
let demo: Promise<DocumentedShell> | undefined;
async function startDemo(): Promise<DocumentedShell> {
  const shell = await openDocumentedShell({ realNpx: false });
  await shell.stay("npm start");
  return shell;
}
afterAll(async () => (await demo)?.stop());

describe.each(pages)("$file", ({ file, commands, runs, compared, notRun }) => {
  const executed = commands.filter(({ kind }) => kind !== "not-run");

  it("has as many commands as the test expects", () => {
    const answered = executed.filter(({ answer }) => answer !== undefined);
    expect({ runs: executed.length, compared: answered.length, notRun: commands.length - executed.length }).toEqual({
      runs,
      compared,
      notRun,
    });
  });

  if (!LONG && !READ_FIRST.includes(file)) return;

  const startsItself = commands.some(({ kind }) => kind === "stays");
  let shell: DocumentedShell;
  beforeAll(async () => {
    demo ??= startsItself ? undefined : startDemo();
    // One page shows that npx finds the command; on all of them it would take longer than everything else together.
    const ownShell = () => openDocumentedShell({ realNpx: file === "README.md" });
    shell = startsItself || demo === undefined ? await ownShell() : await demo;
  });
  afterAll(async () => {
    if (startsItself) await shell.stop();
  });

  it.each(executed.map((documented, index) => ({ ...documented, title: titleOf(documented, index) })))(
    "R12 does what it says, $title",
    async (documented) => {
      if (documented.kind === "stays") return expectAnswer(documented, await shell.stay(documented.command));
      const { code, stdout, all } = await shell.run(documented.command);
      const fails = documented.kind === "fails";
      expect(code !== 0, `It ended with ${code}:\n${all}`).toBe(fails);
      expectAnswer(documented, fails ? all : stdout);
    },
  );
});

function titleOf({ command }: DocumentedCommand, index: number): string {
  return `${index + 1}: ${command.split("\n")[0]}`;
}

function expectAnswer({ answer }: DocumentedCommand, printed: string): void {
  if (answer === undefined) return;
  const { form, text } = answer;
  const isShown = form === "json" ? shows(JSON.parse(text), JSON.parse(printed)) : showsText(text, printed);
  expect(isShown, `The page shows:\n${text}\nIt printed:\n${printed}`).toBe(true);
}
