import type { Column, Row } from "../domain/row.ts";

/**
 * Code tasks: functions that a team registered in code ahead of time. A pipeline only names them (SPEC R2.4).
 *
 * Contract. `load` is called once, before anything else, and refuses a folder unless all of it can be used. `open`
 * checks everything that can be known before a row is read: that the task exists, its parameters, and the columns it
 * returns. A transform keeps nothing between two batches, so a batch may be given to it again.
 */
export interface TaskHost {
  load(): Promise<void>;
  list(): readonly TaskDescription[];
  open(step: TransformStep, input: readonly Column[]): Promise<Transform>;
  /** Ends every process that belongs to the host. */
  close(): Promise<void>;
}

export type TaskLanguage = "TYPESCRIPT" | "PYTHON";

export interface TaskDescription {
  readonly name: string;
  readonly language: TaskLanguage;
  readonly description: string;
  /** JSON Schema of the parameters. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** One step of a task plan. */
export interface TransformStep {
  readonly language: TaskLanguage;
  readonly name: string;
  readonly params: unknown;
}

/** Rows in, rows out: it may map, drop, add or split rows. */
export interface Transform {
  /** The columns of the rows it returns. */
  readonly columns: readonly Column[];
  /** Rejects with the signal's reason if that aborts first; a process working on it is then killed. */
  apply(rows: readonly Row[], signal: AbortSignal): Promise<readonly Row[]>;
  close(): Promise<void>;
}
