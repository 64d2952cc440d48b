import { VitrinaError } from "../domain/error-catalogue.ts";

/** Present on every instance, whichever copy of this module made it. */
const MARK: unique symbol = Symbol.for("vitrina.retry-later");

/** Thrown by a task: what it needs is not available yet; the run waits and tries the batch again. */
export class RetryLater extends Error {
  readonly [MARK] = true;
  readonly delaySeconds: number | undefined;

  /** `delaySeconds`: no sooner than this. */
  constructor(message: string, { delaySeconds }: { readonly delaySeconds?: number } = {}) {
    super(message);
    this.name = "RetryLater";
    this.delaySeconds = delaySeconds;
  }
}

export function isRetryLater(error: unknown): error is RetryLater {
  return error instanceof Error && MARK in error;
}

/** What it becomes outside the task. */
export class TaskRetryLater extends VitrinaError {
  readonly delayMs: number;

  constructor(message: string, delaySeconds: number | null | undefined, cause?: unknown) {
    super("TASK_RETRY_LATER", message, { cause });
    const ms = (delaySeconds ?? 0) * 1000;
    this.delayMs = Number.isFinite(ms) ? Math.max(0, ms) : 0;
  }
}
