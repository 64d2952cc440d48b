import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentedCommands, Shell, shows } from "../support/documented-commands.ts";
import { spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";

const page = await readFile(new URL("../../docs/API.md", import.meta.url), "utf8");

let folder: string;
let vitrina: VitrinaProcess;
let shell: Shell;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-page-"));
  vitrina = spawnVitrina(["start"], { cwd: folder, env: { API_PORT: "0" } });
  await vitrina.untilPrinted("Ctrl-C");
  const url = /API {8}(http:\/\/[^/]+)/.exec(vitrina.output())?.[1] as string;
  shell = new Shell((command) => command.replaceAll("http://127.0.0.1:8000", url));
}, 120_000);
afterAll(async () => {
  await vitrina.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("docs/API.md", () => {
  const commands = documentedCommands(page);

  it("has commands at all, most of them with an answer", () => {
    expect(commands.length).toBeGreaterThan(15);
    expect(commands.filter(({ answer }) => answer !== undefined).length).toBeGreaterThan(12);
  });

  it.each(
    commands.map((documented, index) => ({
      ...documented,
      title: `${index + 1}: ${documented.command.split("\n")[0]}`,
    })),
  )(
    "R12 does what it says, $title",
    async ({ command, answer }) => {
      const printed = await shell.run(command);
      if (answer === undefined) return;
      const actual: unknown = JSON.parse(printed);
      expect(shows(JSON.parse(answer), actual), `The page shows:\n${answer}\nThe answer was:\n${printed}`).toBe(true);
    },
    120_000,
  );
});
