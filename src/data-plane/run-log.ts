import type { LineLevel } from "../domain/log-level.ts";
import type { Log } from "../observability/log.ts";
import type { RunLogBook, RunLogs } from "../observability/run-logs.ts";

/** The ids by which a run's log lines are found. */
interface RunIds {
  readonly pipeline: string;
  readonly pipeline_id: string;
  readonly run_id: string;
  /** Where tracing is on. */
  readonly trace_id?: string;
}

/** Every line goes to the log of the process, with the ids that a person searches for, and to the log of the run. */
export class RunLog implements Log {
  readonly #log: Log;
  readonly #runLogs: RunLogs;
  #ids: RunIds;
  #book: RunLogBook;

  constructor(log: Log, runLogs: RunLogs, ids: RunIds) {
    this.#log = log;
    this.#runLogs = runLogs;
    this.#ids = ids;
    this.#book = runLogs.open(ids.run_id);
  }

  /** What follows belongs to another attempt, which is a run of its own. */
  moveTo(ids: RunIds): void {
    this.#book.end();
    this.#ids = ids;
    this.#book = this.#runLogs.open(ids.run_id);
  }

  debug(fields: object, message: string): void {
    this.#write("debug", fields, message);
  }

  info(fields: object, message: string): void {
    this.#write("info", fields, message);
  }

  warn(fields: object, message: string): void {
    this.#write("warn", fields, message);
  }

  error(fields: object, message: string): void {
    this.#write("error", fields, message);
  }

  end(): void {
    this.#book.end();
  }

  #write(level: LineLevel, fields: object, message: string): void {
    const { trace_id } = this.#ids;
    this.#log[level]({ ...this.#ids, ...fields }, message);
    this.#book.add(level, trace_id === undefined ? fields : { ...fields, trace_id }, message);
  }
}
