import { describe, expect, it } from "vitest";
import { columnsOf, hasPython, loadHost, makeFolder, makeHost, pythonModule } from "./task-folder.ts";

const task = (name: string): string => `defineTask({ name: "${name}", description: "", run: (rows) => rows })`;
const module = (...names: string[]): string => `export default ({ defineTask }) => [${names.map(task).join(", ")}];`;

describe("loading the folder of tasks", () => {
  it("R2.4 takes default exports, named exports and lists, and passes over helpers, tests and other files", async () => {
    const definition = new URL("../../src/tasks/define-task.ts", import.meta.url).href;
    const host = await loadHost({
      "a.mjs": module("one", "two"),
      "b.js": `import { defineTask } from ${JSON.stringify(definition)};
        export const three = ${task("three")}; export default ${task("four")}; export const limit = 3;`,
      "_helper.mjs": "throw new Error('loaded');",
      "a.test.mjs": "throw new Error('loaded');",
      "types.d.ts": "export {};",
      "README.md": "# Tasks",
    });
    expect(host.list().map(({ name }) => name)).toEqual(["four", "one", "three", "two"]);
  });

  it("R2.4 has no tasks without a folder", async () => {
    const host = makeHost(undefined);
    await host.load();
    expect(host.list()).toEqual([]);
    const unknown = { code: "TASK_UNKNOWN", message: expect.stringContaining("there are none") };
    await expect(host.open({ language: "PYTHON", name: "x", params: {} }, [])).rejects.toMatchObject(unknown);
    await expect(host.open({ language: "TYPESCRIPT", name: "x", params: {} }, [])).rejects.toMatchObject(unknown);
  });

  it.each([
    [{ "a.mjs": module("one"), "b.mjs": module("one") }, /b\.mjs.*task one is already defined in a\.mjs/],
    [{ "a.mjs": "export const x = 1;" }, /a\.mjs.*exports no task/],
    [{ "a.mjs": "throw new Error('broken');" }, /a\.mjs cannot be loaded: Error: broken/],
    [{ "a.mjs": "export default () => { throw new Error('broken'); };" }, /a\.mjs cannot be loaded: Error: broken/],
    [{ "a.mjs": module("../up") }, /name of a task must be/],
  ])("R2.4 refuses the TypeScript modules of %j", async (files, message) => {
    const invalid = { code: "TASK_MODULE_INVALID", message: expect.stringMatching(message) };
    await expect(loadHost(files)).rejects.toMatchObject(invalid);
  });

  it.skipIf(!hasPython).each([
    [{ "a.py": pythonModule({ one: "pass" }), "b.py": pythonModule({ one: "pass" }) }, /b\.py.*task one is already/],
    [{ "a.py": "x = 1" }, /a\.py.*defines no task/],
    [{ "a.py": "def broken(:" }, /a\.py cannot be loaded: \n[\s\S]*SyntaxError/],
    [{ "a.py": "import nowhere_to_be_found" }, /ModuleNotFoundError: No module named 'nowhere_to_be_found'/],
    [{ "a.py": "raise SystemExit('out')" }, /SystemExit: out/],
    [{ "json.py": "x = 1" }, /json\.py.*name of a module of Python itself/],
    [{ "a.py": pythonModule({ "../up": "pass" }) }, /SyntaxError|name of a task must be/],
    [
      { "a.py": pythonModule({ one: "pass" }, ", params={'n': {'type': 'int'}}") },
      /parameter 'n' of task 'one' must be/,
    ],
    [
      { "a.py": pythonModule({ one: "pass" }, ", params={'n': {'type': 'integer', 'default': 1.5}}") },
      /default of parameter/,
    ],
  ])("R2.4 refuses the Python modules of %j", async (files, message) => {
    const invalid = { code: "TASK_MODULE_INVALID", message: expect.stringMatching(message) };
    await expect(loadHost(files, { startTimeoutMs: 240_000 })).rejects.toMatchObject(invalid);
  });

  it.skipIf(!hasPython)("R2.4 says where a Python module is that never ends", async () => {
    const load = (startTimeoutMs: number): Promise<unknown> =>
      loadHost({ "a.py": "while True: pass" }, { startTimeoutMs }).then(
        () => "it was loaded",
        (error: unknown) => error,
      );
    // Python itself takes its time to get there on a busy machine.
    let refusal = await load(3_000);
    for (const longer of [12_000, 60_000, 240_000]) {
      if (!/a\.py/.test(String(refusal))) refusal = await load(longer);
    }
    const message = expect.stringMatching(/did not load in time[\s\S]*a\.py/);
    expect(refusal).toMatchObject({ code: "TASK_MODULE_INVALID", message });
  });

  it("R2.4 refuses a folder that is not there", async () => {
    const invalid = { code: "TASK_MODULE_INVALID", hint: expect.stringContaining("TASKS_DIR") };
    await expect(makeHost("/nowhere/at/all").load()).rejects.toMatchObject(invalid);
  });

  it("R2.4 runs everything else without Python, and says what is missing when a pipeline needs it", async () => {
    const files = { "a.mjs": module("one"), "a.py": pythonModule({ two: "return rows" }) };
    const host = makeHost(await makeFolder(files), { python: "/nowhere/python3" });
    await host.load();
    expect(host.list().map(({ name }) => name)).toEqual(["one"]);
    expect(host.logged.join()).toMatch(/Python tasks cannot be used.*\/nowhere\/python3 could not be started/);
    await expect(
      host.open({ language: "PYTHON", name: "two", params: {} }, columnsOf({ x: "text" })),
    ).rejects.toMatchObject({
      code: "PYTHON_UNAVAILABLE",
      message: "Python tasks cannot run: /nowhere/python3 could not be started (spawn /nowhere/python3 ENOENT).",
    });
  });

  it("R2.4 tells what a program that is no Python answered", async () => {
    const host = makeHost(await makeFolder({ "a.py": pythonModule({ one: "return rows" }) }), { python: "cat" });
    await host.load();
    expect(host.logged.join()).toMatch(/cat ended with exit code 1\. It printed last:/);
  });
});
