import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Column, Row } from "../../domain/row.ts";
import { checkColumns } from "../column-types.ts";
import type { Transform, TransformStep } from "../task.ts";
import { ProcessEnded, type PythonProcess } from "./process.ts";
import type { Reply } from "./protocol.ts";
import { type PythonWorker, tell } from "./worker.ts";

let lastId = 0;

/** A task opened in the worker; it is reopened automatically when the worker had to be restarted. */
export async function openPythonTransform(
  worker: PythonWorker,
  { name: task, params }: TransformStep,
  input: readonly Column[],
  batchTimeoutMs: number,
): Promise<Transform> {
  lastId += 1;
  const id = lastId;
  let openedIn: PythonProcess | undefined;

  const open = async (process: PythonProcess, signal?: AbortSignal): Promise<readonly Column[]> => {
    const columns = input.map(({ name, type }) => [name, type]);
    const reply = await process.request("open", { id, task, params, columns }, batchTimeoutMs, signal);
    openedIn = process;
    return reply.columns.map(([name, type]) => ({ name, type }));
  };
  const apply = async (process: PythonProcess, rows: readonly Row[], signal: AbortSignal): Promise<readonly Row[]> => {
    if (openedIn !== process) await open(process, signal);
    const columns = input.map((_, index) => rows.map((row) => row[index]));
    return toRows(await process.request("apply", { id, columns }, batchTimeoutMs, signal), rows, sameIn);
  };
  const explain = (error: unknown): never => {
    throw error instanceof ProcessEnded ? lost(task, batchTimeoutMs, error) : error;
  };

  const columns = checkColumns(task, await worker.use((process) => open(process)).catch(explain));
  const sameIn = columns.map(({ name }) => input.findIndex((column) => column.name === name));
  return {
    columns,
    apply: (rows, signal) => worker.use((process) => apply(process, rows, signal), signal).catch(explain),
    async close() {
      if (openedIn === undefined || openedIn.isOver) return;
      const forget = async (process: PythonProcess): Promise<void> => {
        if (process === openedIn) await process.request("close", { id }, batchTimeoutMs);
      };
      await worker.use(forget).catch(() => undefined);
    },
  };
}

/** A column that comes back as null is unchanged from the rows sent. */
function toRows({ rows: count, columns }: Reply<"apply">, sent: readonly Row[], sameIn: readonly number[]): Row[] {
  const cells = columns.map((texts, index) => ({ texts, before: sameIn[index] ?? -1 }));
  return Array.from({ length: count }, (_, number) => {
    const row = sent[number];
    return cells.map(({ texts, before }) => (texts === null ? row?.[before] : texts[number]) ?? null);
  });
}

function lost(task: string, batchTimeoutMs: number, error: ProcessEnded): VitrinaError {
  if (error.timedOut) {
    const sentence = `Task ${task} did not finish a batch within ${batchTimeoutMs / 1000} s and was stopped.`;
    return new VitrinaError("TASK_TIMEOUT", tell(sentence, error), { cause: error });
  }
  return new VitrinaError("TASK_WORKER_LOST", tell(`The Python worker ${error.message} in task ${task}.`, error), {
    cause: error,
  });
}
