import { setTimeout as delay } from "node:timers/promises";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { type LineLevel, type LogLevel, levelsFrom } from "../domain/log-level.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { NewRunLogLine } from "../domain/run-log.ts";
import { describeError, type Log, redact } from "./log.ts";

/** The first lines of a run are kept as they come, and the last ones when it ends: this many of each. */
const FIRST_LINES = 1000;
const LAST_LINES = 100;
/** For all runs together, while the meta-store is unreachable or slow. */
const MOST_WAITING_LINES = 5000;
const LINES_AT_ONCE = 500;
const WRITE_EVERY_MS = 1000;
const CLOSE_TIMEOUT_MS = 3000;

export interface RunLogsOptions {
  /** Less severe lines are not kept; `silent` keeps none. */
  readonly level: LogLevel;
  readonly log: Log;
  write(lines: readonly NewRunLogLine[]): Promise<void>;
}

/** The log of one run. */
export interface RunLogBook {
  add(level: LineLevel, fields: object, message: string): void;
  /** Nothing more will come: its last lines are written. */
  end(): void;
}

/**
 * Keeps the logs of runs. A run only adds lines here, which cannot fail or block; they are written in bulk
 * about once a second. What cannot be written in time is left out, and the log says so.
 */
export class RunLogs {
  readonly #options: RunLogsOptions;
  readonly #levels: ReadonlySet<LineLevel>;
  readonly #waiting: NewRunLogLine[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isFailing = false;
  #lost = 0;

  constructor(options: RunLogsOptions) {
    this.#options = options;
    this.#levels = new Set(levelsFrom(options.level));
  }

  /** How many lines could not be written. */
  get lost(): number {
    return this.#lost;
  }

  open(runId: string): RunLogBook {
    let kept = 0;
    let isFull = false;
    let leftOut = 0;
    const tail: NewRunLogLine[] = [];
    const line = (level: LineLevel, fields: object, message: string): NewRunLogLine => ({
      runId,
      at: new Date(),
      level,
      message,
      fields: keptFields(fields),
    });
    return {
      add: (level, fields, message) => {
        if (!this.#levels.has(level)) return;
        if (!isFull && kept < FIRST_LINES && this.#waiting.length < MOST_WAITING_LINES) {
          this.#enqueue(line(level, fields, message));
          kept += 1;
          // People soon look for the reason of a failure.
          if (level === "error") void this.#write();
          return;
        }
        if (!isFull)
          this.#enqueue(line("warn", {}, "the log of this run is full: of what follows, only the end is kept"));
        isFull = true;
        tail.push(line(level, fields, message));
        if (tail.length > LAST_LINES) {
          tail.shift();
          leftOut += 1;
        }
      },
      end: () => {
        if (leftOut > 0) this.#enqueue(line("warn", { lines: leftOut }, "lines were left out here"));
        for (const last of tail.splice(0)) this.#enqueue(last);
        void this.#write();
      },
    };
  }

  /** Writes the waiting lines, unless that takes too long. */
  async close(): Promise<void> {
    const timeout = new AbortController();
    await Promise.race([this.#write(), delay(CLOSE_TIMEOUT_MS, undefined, { signal: timeout.signal })]).catch(
      () => undefined,
    );
    timeout.abort();
    clearTimeout(this.#timer);
    if (this.#waiting.length > 0) this.#lose(this.#waiting.length, "the runner stopped");
  }

  #enqueue(line: NewRunLogLine): void {
    this.#waiting.push(line);
    this.#writeSoon();
  }

  #writeSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#write();
    }, WRITE_EVERY_MS).unref();
  }

  /** One write after the other, so that lines stay in order. Never rejects. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeWaiting());
    return this.#writing;
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.slice(0, LINES_AT_ONCE);
      try {
        await this.#options.write(lines);
        this.#waiting.splice(0, lines.length);
        this.#isFailing = false;
      } catch (error) {
        if (error instanceof VitrinaError && mayPass(error.retry)) {
          if (!this.#isFailing) this.#options.log.warn({ err: error }, "run logs cannot be written; trying again");
          this.#isFailing = true;
          this.#writeSoon();
          return;
        }
        this.#waiting.splice(0, lines.length);
        this.#lose(lines.length, error);
      }
    }
  }

  #lose(lines: number, reason: unknown): void {
    this.#lost += lines;
    this.#options.log.error({ lines, lost: this.#lost, err: reason }, "lines of run logs were lost");
  }
}

/** For the fields of one kept line. */
const MOST_BYTES_OF_FIELDS = 8192;
/** For one text in a line that has too many. */
const LONGEST_TEXT_OF_FIELDS = 1000;

/** The fields of a line as JSON: redacted like every line of the log, and short enough to be kept. */
export function keptFields(fields: object): string {
  try {
    const cleaned = redact(JSON.stringify(fields, withoutStacks));
    // Cut only after redaction: half a secret may not look like one.
    const parsed: unknown = JSON.parse(cleaned);
    return fits(cleaned) ? cleaned : shortened(parsed);
  } catch {
    return JSON.stringify({ fields_left_out: "They cannot be written as JSON." });
  }
}

function shortened(fields: unknown): string {
  const short = JSON.stringify(fields, (_, value: unknown) => (typeof value === "string" ? cut(value) : value));
  return fits(short) ? short : JSON.stringify({ fields_left_out: "They are too long." });
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= MOST_BYTES_OF_FIELDS;
}

function cut(text: string): string {
  return text.length <= LONGEST_TEXT_OF_FIELDS ? text : `${text.slice(0, LONGEST_TEXT_OF_FIELDS - 1)}…`;
}

/** Stack traces are only for those who can read the process's own log. */
function withoutStacks(_: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { stack: _stack, ...rest } = describeError(value);
  return rest;
}
