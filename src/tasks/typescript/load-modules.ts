import { readdir } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Log } from "../../observability/log.ts";
import { defineTask, isTask, RetryLater, type Task, type TaskFactory, z } from "../define-task.ts";

/** True where Node.js runs TypeScript by itself: 22.18 and newer. */
const runsTypeScript = Boolean((process.features as { typescript?: unknown }).typescript);

/** Helpers (`_names.mjs`), tests and declarations are not task modules. */
export async function taskFiles(folder: string, extensions: readonly string[]): Promise<string[]> {
  const names = await readdir(folder).catch((error: Error) => {
    throw new VitrinaError("TASK_MODULE_INVALID", `The folder of tasks ${folder} cannot be read: ${error.message}.`, {
      hint: "Create the folder, or set TASKS_DIR to the right one.",
      cause: error,
    });
  });
  return names
    .filter((name) => extensions.includes(extname(name)) && !/^[_.]|\.d\.ts$|\.test\.|^test_/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** The only place that imports user code: files that are in the folder when the program starts. */
export async function loadModules(folder: string, log: Log): Promise<ReadonlyMap<string, Task>> {
  const typeScript = await taskFiles(folder, [".ts", ".mts"]);
  if (!runsTypeScript && typeScript.length > 0) {
    log.warn(
      { files: typeScript, node: process.version },
      "tasks in .ts files need Node.js 22.18; compile them to .js",
    );
  }
  const registry = new Map<string, Task>();
  const owners = new Map<string, string>();
  const files = [...(await taskFiles(folder, [".js", ".mjs"])), ...(runsTypeScript ? typeScript : [])];
  for (const file of files) {
    for (const task of tasksOf(await importModule(file), file)) {
      if (registry.get(task.name) === task) continue;
      const owner = owners.get(task.name);
      if (owner !== undefined) throw invalid(file, `task ${task.name} is already defined in ${basename(owner)}`);
      registry.set(task.name, task);
      owners.set(task.name, file);
    }
  }
  return registry;
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw invalid(file, String(error), error);
  }
}

function tasksOf(module: Record<string, unknown>, file: string): Task[] {
  const tasks = Object.values(module).filter(isTask);
  const { default: factory } = module;
  if (isFactory(factory)) tasks.push(...callFactory(factory, file));
  if (tasks.length === 0) throw invalid(file, "it exports no task; the name of a helper must begin with _");
  return tasks;
}

function isFactory(value: unknown): value is TaskFactory {
  return typeof value === "function";
}

function callFactory(factory: TaskFactory, file: string): Task[] {
  try {
    return [factory({ defineTask, z, RetryLater })].flat().filter(isTask);
  } catch (error) {
    throw invalid(file, String(error), error);
  }
}

function invalid(file: string, problem: string, cause?: unknown): VitrinaError {
  return new VitrinaError("TASK_MODULE_INVALID", `${file} cannot be loaded: ${problem}.`, { cause });
}
