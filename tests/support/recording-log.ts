import type { Log } from "../../src/observability/log.ts";

interface LogEntry {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: object;
}

/** A log that a test can read. */
export interface RecordingLog extends Log {
  readonly entries: readonly LogEntry[];
  has(message: string): boolean;
}

export function recordingLog(): RecordingLog {
  const entries: LogEntry[] = [];
  const record =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      void entries.push({ level, message, fields });
  return {
    entries,
    has: (message) => entries.some((entry) => entry.message === message),
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
  };
}
