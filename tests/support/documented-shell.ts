import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../src/embedded-postgres/free-port.ts";
import { noteProcessGroup } from "./left-processes.ts";
import { until } from "./until.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const ADDRESS_ON_THE_PAGES = "http://127.0.0.1:8000";
const NOT_OF_THE_PROJECT = [".git", ".env", ".vitrina", ".cache"];

interface Printed {
  readonly code: number | null;
  readonly stdout: string;
  /** Both outputs, as a terminal shows them. */
  readonly all: string;
}

/** A reader at a terminal in the folder of the project: one command after the other, and one that stays. */
export interface DocumentedShell {
  run(command: string): Promise<Printed>;
  /** Resolves with what it has printed when it says how to stop it. */
  stay(command: string): Promise<string>;
  stop(): Promise<void>;
}

/**
 * The folder is a copy of the project made of links, so that nothing a page makes stays behind, and nothing is
 * installed again. The API gets a free port; the commands, and what they print, are written as if it had the usual one.
 */
export async function openDocumentedShell({ realNpx }: { readonly realNpx: boolean }): Promise<DocumentedShell> {
  const folder = await mkdtemp(join(tmpdir(), "vitrina-page-"));
  for (const name of await readdir(PROJECT)) {
    if (!NOT_OF_THE_PROJECT.includes(name)) await symlink(join(PROJECT, name), join(folder, name));
  }
  const port = String(await freePort());
  const address = `http://127.0.0.1:${port}`;
  const environment = {
    PATH: realNpx ? process.env["PATH"] : `${await quickNpx(folder)}:${process.env["PATH"]}`,
    HOME: process.env["HOME"],
    TZ: "UTC",
    API_PORT: port,
    VITRINA_API_URL: address,
    npm_config_loglevel: "error",
    // npx remembers each folder it was called in.
    npm_config_cache: join(folder, ".npm"),
    npm_config_update_notifier: "false",
  };
  const staying: ChildProcess[] = [];
  let exports = "";

  const start = (command: string) => {
    const text = `${exports}\n${command}`.replaceAll(ADDRESS_ON_THE_PAGES, address);
    // A group of its own, so that Ctrl-C can reach everything it starts.
    const child = spawn("bash", ["--norc", "-euc", text], {
      cwd: folder,
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const printed = { stdout: "", all: "" };
    const collect = (chunk: Buffer, isData: boolean): void => {
      const part = chunk.toString();
      printed.all += part;
      if (isData) printed.stdout += part;
    };
    child.stdout.on("data", (chunk: Buffer) => collect(chunk, true));
    child.stderr.on("data", (chunk: Buffer) => collect(chunk, false));
    return { child, printed };
  };
  const asOnThePage = (text: string): string => text.replaceAll(address, ADDRESS_ON_THE_PAGES);

  return {
    async run(command) {
      const { child, printed } = start(command);
      const [code] = (await once(child, "close")) as [number | null];
      if (command.startsWith("export ")) exports += command;
      return { code, stdout: asOnThePage(printed.stdout), all: asOnThePage(printed.all) };
    },
    async stay(command) {
      const { child, printed } = start(command);
      noteProcessGroup(child.pid);
      staying.push(child);
      await until(`${command.trim()} says how to stop it`, () => {
        if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}:\n${printed.all}`);
        return printed.all.includes("Ctrl-C");
      });
      return asOnThePage(printed.all);
    },
    async stop() {
      for (const child of staying.filter(({ exitCode }) => exitCode === null)) {
        process.kill(-(child.pid as number), "SIGINT");
        await once(child, "close");
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What `npx vitrina` starts, without the seconds that npx needs to find it. */
async function quickNpx(folder: string): Promise<string> {
  const programs = join(folder, ".programs");
  await mkdir(programs);
  const script = `#!/bin/sh\n[ "$1" = vitrina ] && shift && exec node "${join(PROJECT, "bin/vitrina.mjs")}" "$@"\n`;
  await writeFile(join(programs, "npx"), script, { mode: 0o755 });
  return programs;
}
