import { VitrinaError } from "../../domain/error-catalogue.ts";
import { ProcessEnded, type PythonOptions, PythonProcess } from "./process.ts";
import { PROTOCOL, type Reply } from "./protocol.ts";

type Descriptions = Reply<"describe">["tasks"];

export interface PythonWorkerOptions extends PythonOptions {
  /** Time for Python to start and to import the tasks and their libraries. */
  readonly startTimeoutMs: number;
}

/**
 * The one Python process of a runner. It is started when first needed, lives on across batches and pipelines, and is
 * restarted after it was lost. Requests wait for each other.
 */
export class PythonWorker {
  readonly #options: PythonWorkerOptions;
  #process: PythonProcess | undefined;
  #descriptions: Descriptions | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: PythonWorkerOptions) {
    this.#options = options;
  }

  /** The tasks that the process has; undefined until one could be started. */
  get descriptions(): Descriptions | undefined {
    return this.#descriptions;
  }

  /** Gives the process to one caller at a time. */
  async use<T>(caller: (process: PythonProcess) => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const turn = this.#queue.then(async () => {
      signal?.throwIfAborted();
      return caller(await this.#running());
    });
    this.#queue = turn.catch(() => undefined);
    return signal === undefined ? turn : untilAborted(turn, signal);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#process?.kill();
    await this.#queue;
  }

  async #running(): Promise<PythonProcess> {
    if (this.#isClosed) throw new VitrinaError("TASK_WORKER_LOST", "The Python worker was stopped.");
    if (this.#process === undefined || this.#process.isOver) {
      this.#process = new PythonProcess(this.#options);
      this.#descriptions = await this.#describe(this.#process);
    }
    return this.#process;
  }

  async #describe(process: PythonProcess): Promise<Descriptions> {
    try {
      return (await process.request("describe", { protocol: PROTOCOL }, this.#options.startTimeoutMs)).tasks;
    } catch (error) {
      await process.kill();
      if (!(error instanceof ProcessEnded)) throw error;
      const { program, folder } = this.#options;
      if (error.timedOut) {
        throw new VitrinaError("TASK_MODULE_INVALID", tell(`The tasks in ${folder} did not load in time.`, error));
      }
      throw new VitrinaError(
        "PYTHON_UNAVAILABLE",
        tell(`Python tasks cannot run: ${program} ${error.message}.`, error),
      );
    }
  }
}

/** The parts of the watchdog's report that are not about the author's own code. */
const WATCHDOG = /^Timeout \(|^Thread 0x|[/\\]vitrina_tasks[/\\]|[/\\]threading\.py|<frozen /;

/** The sentence, and what the process printed last. */
export function tell(sentence: string, { lastLines, timedOut }: ProcessEnded): string {
  const lines = lastLines.filter((line) => !timedOut || !WATCHDOG.test(line));
  if (lines.length === 0) return sentence;
  return `${sentence} ${timedOut ? "What it printed, and where it was" : "It printed last"}:\n${lines.join("\n")}`;
}

/** An aborted caller need not wait for its turn. */
function untilAborted<T>(turn: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    turn.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
