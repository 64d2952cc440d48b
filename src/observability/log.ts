import { pino } from "pino";
import pretty from "pino-pretty";
import type { LineLevel, LogLevel } from "../domain/log-level.ts";

/** What the rest of the program needs from a logger. Fields carry the ids; the message is a short sentence. */
export type Log = Readonly<Record<LineLevel, (fields: object, message: string) => void>>;

type Cleaning = readonly [secret: RegExp, clean: (found: string, ...parts: (string | undefined)[]) => string];

/**
 * What a secret looks like, anywhere in a text, and what replaces it. Quotes stay, so that JSON stays JSON. Each pattern
 * is found in one pass over the text: what begins like a secret but is not one is matched as a whole, so that it is not
 * scanned again from every position inside it.
 */
const SECRETS: readonly Cleaning[] = [
  // A user and password in any URL, also a password with characters that should have been encoded.
  [/([a-z][a-z0-9+.-]{0,30}:\/\/)([^\s"'<>\\]*)/gi, (_, scheme, rest = "") => `${scheme}${withoutUser(rest)}`],
  [/\bvitrina_([0-9a-f]{12})_[\w-]{43}/g, (_, id) => `vitrina_${id}_***`],
  // Tokens: three parts in base64, of which the first is a JSON object.
  [/\beyJ[\w-]+(\.[\w-]+\.[\w-]*)?/g, (found, isToken) => (isToken === undefined ? found : "***")],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, (_, scheme) => `${scheme} ***`],
  [
    /((?:password|passwd|pwd|secret|token|authorization|api[-_]?key)(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?)(?!bearer|basic)[^\s"'\\,;&}]+/gi,
    (_, name) => `${name}***`,
  ],
];

function withoutUser(rest: string): string {
  const at = rest.lastIndexOf("@");
  return at === -1 ? rest : `***${rest.slice(at)}`;
}

export function redact(text: string): string {
  return SECRETS.reduce((cleaned, [secret, clean]) => cleaned.replace(secret, clean), text);
}

/** JSON lines; pretty on a terminal. The one place where secrets are removed from what is written. */
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
