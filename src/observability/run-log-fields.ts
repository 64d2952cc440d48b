import { describeError, redact } from "./log.ts";

/** Of the fields of one kept line. */
const MOST_BYTES = 8192;
/** Of one text in a line that has too many. */
const LONGEST_TEXT = 1000;

/** The fields of a line as JSON: cleaned like every line of the log, and short enough to be kept. */
export function keptFields(fields: object): string {
  try {
    const cleaned = redact(JSON.stringify(fields, withoutStacks));
    // Cut only what is clean already: half a secret may not look like one.
    const parsed: unknown = JSON.parse(cleaned);
    return fits(cleaned) ? cleaned : shortened(parsed);
  } catch {
    return JSON.stringify({ fields_left_out: "They cannot be written as JSON." });
  }
}

function shortened(fields: unknown): string {
  const short = JSON.stringify(fields, (_, value: unknown) => (typeof value === "string" ? cut(value) : value));
  return fits(short) ? short : JSON.stringify({ fields_left_out: "They are too long." });
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= MOST_BYTES;
}

function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT - 1)}…`;
}

/** Where in the program an error arose is for those who can read the log of the process. */
function withoutStacks(_: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { stack: _stack, ...rest } = describeError(value);
  return rest;
}
