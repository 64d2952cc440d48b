/** The severity of a log line, least severe first. */
export const LINE_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LineLevel = (typeof LINE_LEVELS)[number];

/** The least severe level that is written; `silent`: nothing is. */
export const LOG_LEVELS = [...LINE_LEVELS, "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The level itself, and all that are more severe. */
export function levelsFrom(least: LogLevel): readonly LineLevel[] {
  return least === "silent" ? [] : LINE_LEVELS.slice(LINE_LEVELS.indexOf(least));
}
