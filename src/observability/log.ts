import { pino } from "pino";
import pretty from "pino-pretty";
import type { LineLevel, LogLevel } from "../domain/log-level.ts";

/** What the rest of the program needs of a logger. Fields carry the ids; the message is a short sentence. */
export type Log = Readonly<Record<LineLevel, (fields: object, message: string) => void>>;

/** What a secret looks like, wherever it stands, and what is left of it. Quotes stay, so that JSON stays JSON. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  // A user and password in any URL, also a password with characters that should have been encoded. The scheme is
  // bounded: without that, a word of 100,000 letters would take minutes.
  [/([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s"'<>\\]*@/gi, "$1***@"],
  [/\bvitrina_([0-9a-f]{12})_[\w-]{43}/g, "vitrina_$1_***"],
  // Tokens: three parts in base64, of which the first is a JSON object.
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "***"],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, "$1 ***"],
  [
    /((?:password|passwd|pwd|secret|token|authorization|api[-_]?key)(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?)(?!bearer|basic)[^\s"'\\,;&}]+/gi,
    "$1***",
  ],
];

export function redact(text: string): string {
  return SECRETS.reduce((cleaned, [secret, rest]) => cleaned.replace(secret, rest), text);
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
      serializers: { err: (error: unknown) => (error instanceof Error ? describeError(error) : error) },
      hooks: {
        streamWrite: redact,
      },
    },
    destination,
  );
  return logger;
}

export function describeError(error: Error): Record<"name" | "code" | "message" | "stack", unknown> {
  const { code } = error as { code?: unknown };
  return { name: error.name, code, message: error.message, stack: error.stack };
}
