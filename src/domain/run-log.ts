import { z } from "zod";
import { LINE_LEVELS, type LineLevel } from "./log-level.ts";

/** The lines that a run wrote, kept with the run. */

export const runLogLineSchema = z.object({
  id: z.int().describe("Grows from line to line."),
  at: z.date(),
  level: z.enum(LINE_LEVELS),
  message: z.string(),
  fields: z.record(z.string(), z.unknown()).describe("What the message is about: rows, timings, codes."),
});
export type RunLogLine = z.infer<typeof runLogLineSchema>;

/** A line on its way into the meta-store. */
export interface NewRunLogLine {
  readonly runId: string;
  readonly at: Date;
  readonly level: LineLevel;
  readonly message: string;
  /** An object as JSON, without secrets. */
  readonly fields: string;
}

/** The last lines of a run are written after it has ended; after this long no more are to be expected. */
export const LAST_LINES_AFTER_MS = 2000;
