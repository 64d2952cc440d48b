/** How grave a line of a log is, from the finest to the gravest. */
export const LINE_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LineLevel = (typeof LINE_LEVELS)[number];

/** From which level on lines are written; `silent`: none. */
export const LOG_LEVELS = [...LINE_LEVELS, "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The level itself, and all that are graver. */
export function levelsFrom(least: LogLevel): readonly LineLevel[] {
  return least === "silent" ? [] : LINE_LEVELS.slice(LINE_LEVELS.indexOf(least));
}
