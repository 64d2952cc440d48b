import { z } from "zod";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column } from "../domain/row.ts";
import type { Log } from "../observability/log.ts";
import type { Task } from "./define-task.ts";
import { openPythonTransform } from "./python/transform.ts";
import { PythonWorker, type PythonWorkerOptions } from "./python/worker.ts";
import type { TaskDescription, TaskHost, TaskLanguage, Transform, TransformStep } from "./task.ts";
import { loadModules, taskFiles } from "./typescript/load-modules.ts";
import { openTransform } from "./typescript/transform.ts";

export interface TaskHostConfig extends Omit<PythonWorkerOptions, "folder" | "program" | "printed"> {
  /** The folder of the task modules. None: there are no code tasks. */
  readonly folder: string | undefined;
  readonly python: string;
  readonly batchTimeoutMs: number;
  readonly log: Log;
}

type Open = (step: TransformStep, input: readonly Column[]) => Promise<Transform>;

/** The host of one runner: TypeScript in this process, Python in one process beside it. */
export function openTaskHost(config: TaskHostConfig): TaskHost {
  const { folder, python: program, batchTimeoutMs, log } = config;
  const printed = (line: string): void => log.debug({ line }, "a Python task printed");
  let registry: ReadonlyMap<string, Task> = new Map();
  let worker: PythonWorker | undefined;

  const list = (): TaskDescription[] => {
    const python = (worker?.descriptions ?? []).map((task) => ({ ...task, language: "PYTHON" as const }));
    return [...Array.from(registry.values(), describe), ...python].sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  const open: Record<TaskLanguage, Open> = {
    async TYPESCRIPT(step, input) {
      const task = registry.get(step.name);
      if (task === undefined) throw unknownTask(step, list());
      return openTransform(task, step.params, input, batchTimeoutMs);
    },
    async PYTHON(step, input) {
      const isKnown = worker?.descriptions?.some(({ name }) => name === step.name) ?? true;
      if (worker === undefined || !isKnown) throw unknownTask(step, list());
      return openPythonTransform(worker, step, input, batchTimeoutMs);
    },
  };

  return {
    async load() {
      if (folder === undefined) return;
      registry = await loadModules(folder, log);
      if ((await taskFiles(folder, [".py"])).length === 0) return;
      worker = new PythonWorker({ ...config, folder, program, printed });
      await describeTasks(worker, log);
    },
    list,
    open: (step, input) => open[step.language](step, input),
    close: async () => worker?.close(),
  };
}

/** A machine without Python still runs everything else; a pipeline that needs it fails with an explanation. */
async function describeTasks(worker: PythonWorker, log: Log): Promise<void> {
  try {
    await worker.use(async () => undefined);
  } catch (error) {
    if (!(error instanceof VitrinaError) || error.code !== "PYTHON_UNAVAILABLE") throw error;
    log.warn({ err: error }, "Python tasks cannot be used");
  }
}

function describe({ name, description, paramsSchema }: Task): TaskDescription {
  return { name, language: "TYPESCRIPT", description, params: jsonSchemaOf(paramsSchema) };
}

/** What JSON Schema cannot express is left out; the task's own schema still checks it. */
function jsonSchemaOf(schema: z.ZodType): TaskDescription["params"] {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
}

function unknownTask({ language, name }: TransformStep, known: readonly TaskDescription[]): VitrinaError {
  const names = known.filter((task) => task.language === language).map((task) => task.name);
  const others = names.length === 0 ? "there are none" : `there are ${names.join(", ")}`;
  return new VitrinaError("TASK_UNKNOWN", `There is no ${language} task ${JSON.stringify(name)}; ${others}.`);
}
