import { fileURLToPath } from "node:url";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column } from "../../domain/row.ts";
import type { PreparedTask, Task } from "../define-task.ts";
import { isRetryLater, TaskRetryLater } from "../retry-later.ts";
import { rowDecoder, rowEncoder } from "../row-codec.ts";
import type { Transform } from "../task.ts";
import { withinLimits } from "../within-limits.ts";

/** Runs in this process: a task that never yields blocks it, until the lease runs out. */
export function openTransform(
  task: Task,
  params: unknown,
  input: readonly Column[],
  batchTimeoutMs: number,
): Transform {
  const prepared = prepare(task, params, input);
  const decode = rowDecoder(input);
  const encode = rowEncoder(task.name, prepared.columns, input);
  const timeoutError = (): VitrinaError =>
    new VitrinaError("TASK_TIMEOUT", `Task ${task.name} did not finish a batch within ${batchTimeoutMs / 1000} s.`);
  return {
    columns: prepared.columns,
    async apply(rows, signal) {
      signal.throwIfAborted();
      try {
        const result = Promise.resolve(prepared.run(decode(rows), signal));
        const returned: unknown = await withinLimits(result, { signal, timeoutMs: batchTimeoutMs, timeoutError });
        // Encoding may run the task's own code, if it is a generator.
        return encode(requireIterable(task.name, returned));
      } catch (error) {
        const isOurs = error instanceof VitrinaError || (signal.aborted && error === signal.reason);
        throw isOurs ? error : failure(task.name, error);
      }
    },
    close: async () => undefined,
  };
}

function prepare(task: Task, params: unknown, input: readonly Column[]): PreparedTask {
  try {
    return task.prepare(params, input);
  } catch (error) {
    throw error instanceof VitrinaError ? error : failure(task.name, error);
  }
}

function requireIterable(task: string, value: unknown): Iterable<unknown> {
  if (typeof value === "object" && value !== null && Symbol.iterator in value) return value as Iterable<unknown>;
  throw new VitrinaError(
    "TASK_RESULT_INVALID",
    `Task ${task} returned ${value === null ? value : typeof value} instead of rows.`,
  );
}

const OWN_FOLDER = [new URL("..", import.meta.url).href, fileURLToPath(new URL("..", import.meta.url))];

/** Only the author's own frames: those before the first one in this folder. */
function failure(task: string, error: unknown): VitrinaError {
  if (isRetryLater(error)) {
    return new TaskRetryLater(`Task ${task} asks to be tried again later: ${error.message}`, error.delaySeconds, error);
  }
  const frames = error instanceof Error ? (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line)) : [];
  const ours = frames.findIndex((line) => OWN_FOLDER.some((folder) => line.includes(folder)));
  const own = frames.slice(0, ours === -1 ? 5 : ours).join("\n");
  return new VitrinaError("TASK_FAILED", `Task ${task} failed: ${String(error)}${own === "" ? "" : `\n${own}`}`, {
    cause: error,
  });
}
