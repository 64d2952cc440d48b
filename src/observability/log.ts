import { pino } from "pino";
import pretty from "pino-pretty";

/** What the rest of the program needs of a logger. Fields carry the ids; the message is a short sentence. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** A user and password in any URL. */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@:]*(:[^\s/@]*)?@/gi;

export function redact(text: string): string {
  return text.replace(URL_CREDENTIALS, "$1***@");
}

/** JSON lines; pretty on a terminal. The one place where what is written is cleaned of secrets. */
export function createLog(options: { level: LogLevel; file?: string }): Log {
  const destination =
    options.file === undefined && process.stdout.isTTY
      ? pretty({ colorize: true, ignore: "pid,hostname", sync: true })
      : pino.destination({ dest: options.file ?? 1, sync: true });
  const logger = pino(
    {
      level: options.level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      hooks: {
        streamWrite: redact,
      },
    },
    destination,
  );
  return logger;
}

function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  return { name: error.name, code, message: error.message, stack: error.stack };
}
