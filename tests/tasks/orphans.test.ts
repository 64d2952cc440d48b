import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { describe, expect, it } from "vitest";
import { isAlive, nodeModules } from "../support/embedded-postgres-harness.ts";
import { until } from "../support/until.ts";
import { hasPython, makeFolder, pythonModule } from "./task-folder.ts";

const inRepository = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** A runner in small: loads the tasks beside it, and gives one of them a batch. */
const PARENT = `
import { openTaskHost } from "./dist/tasks/python/host.mjs";
const log = { debug() {}, info() {}, warn: console.error, error: console.error };
const host = openTaskHost({
  folder: process.argv[2], python: "python3", memoryLimitMib: 1024, batchTimeoutMs: 60_000, startTimeoutMs: 60_000,
  environment: process.env, log,
});
await host.load();
const transform = await host.open({ language: "PYTHON", name: process.argv[3], params: {} }, [{ name: "x", type: "text" }]);
await transform.apply([["x"]], new AbortController().signal);
setInterval(() => undefined, 60_000);
`;

const WRITE_PIDS =
  "child = subprocess.Popen(['sleep', '1000'])\nopen('pids.tmp', 'w').write(f'{os.getpid()} {child.pid}')\nos.rename('pids.tmp', 'pids')\n";

/** The bundle lies as deep as the sources do, because the worker finds its Python package from there. */
async function makeParent(): Promise<string> {
  const folder = await makeFolder({ "parent.mjs": PARENT });
  await build({
    configFile: false,
    logLevel: "error",
    build: {
      ssr: inRepository("src/tasks/open-task-host.ts"),
      outDir: join(folder, "dist", "tasks", "python"),
      rollupOptions: { output: { entryFileNames: "host.mjs" } },
    },
  });
  await symlink(nodeModules, join(folder, "node_modules"));
  await symlink(inRepository("python"), join(folder, "python"));
  return folder;
}

describe.skipIf(!hasPython)("R2.4 when the runner is killed with SIGKILL", () => {
  it.each(["idle", "busy"])("no process of an %s Python worker is left", async (name) => {
    const parent = await makeParent();
    const tasks = await makeFolder({
      "tasks.py": pythonModule({
        idle: `${WRITE_PIDS}return rows`,
        busy: `${WRITE_PIDS}while True:\n    pass`,
      }),
    });
    const runner = spawn(process.execPath, [join(parent, "parent.mjs"), tasks, name], { stdio: "inherit" });
    const text = await until("the task runs", () => readFile(join(tasks, "pids"), "utf8").catch(() => undefined));
    const pids = text.split(" ").map(Number);
    expect(await Promise.all(pids.map(isAlive))).toEqual([true, true]);

    runner.kill("SIGKILL");
    await once(runner, "exit");
    await until("all are gone", async () => !(await Promise.all(pids.map(isAlive))).includes(true));
  });
});
