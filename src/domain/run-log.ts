import { z } from "zod";

/** The lines that a run wrote, kept with the run. */

/** From the finest to the gravest. */
export const RUN_LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type RunLogLevel = (typeof RUN_LOG_LEVELS)[number];

export const runLogLineSchema = z.object({
  id: z.int().describe("Grows from line to line."),
  at: z.date(),
  level: z.enum(RUN_LOG_LEVELS),
  message: z.string(),
  fields: z.record(z.string(), z.unknown()).describe("What the message is about: rows, timings, codes."),
});
export type RunLogLine = z.infer<typeof runLogLineSchema>;

/** A line on its way into the meta-store. */
export interface NewRunLogLine {
  readonly runId: string;
  readonly at: Date;
  readonly level: RunLogLevel;
  readonly message: string;
  /** An object as JSON, without secrets. */
  readonly fields: string;
}

/** The level itself, and all that are graver. */
export function levelsFrom(least: RunLogLevel): readonly RunLogLevel[] {
  return RUN_LOG_LEVELS.slice(RUN_LOG_LEVELS.indexOf(least));
}

/** The last lines of a run are written after it has ended; so much later nothing more is to be expected. */
export const LAST_LINES_AFTER_MS = 2000;
