import { formatArrayText, parseArrayText } from "./array-text.ts";
import { withoutModifier } from "./column-types.ts";

/**
 * A value as the author of a task sees it. Nothing is rounded: what has no exact JavaScript value stays text.
 *
 * | PostgreSQL | JavaScript |
 * | --- | --- |
 * | `boolean` | boolean |
 * | `smallint`, `integer`, `real`, `double precision` | number |
 * | `bigint` | bigint |
 * | arrays of built-in types, one-dimensional | array of the element's values |
 * | `numeric`, dates and times, `json`, `jsonb`, everything else | text, exactly as PostgreSQL prints it |
 *
 * `json` stays text because JSON.parse rounds large numbers; an object or array that a task returns is serialised.
 */
export type TaskValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly TaskValue[]
  | { readonly [key: string]: unknown };

export interface ValueCodec {
  decode(text: string): TaskValue;
  /** Throws WrongValue; never called with null. */
  encode(value: unknown): string;
}

/** The value does not fit its column; the caller knows which row and column that was. */
export class WrongValue extends Error {}

/** The codec of a type as `format_type` prints it. */
export function codecFor(type: string): ValueCodec {
  const name = withoutModifier(type);
  const codec = CODECS[name];
  if (codec !== undefined) return codec;
  const element = name.endsWith("[]") ? name.slice(0, -2) : undefined;
  if (element === undefined || !COMMA_SEPARATED.has(element)) return TEXT;
  return arrayOf(CODECS[element] ?? TEXT);
}

function wholeNumber(least: number, most: number): ValueCodec {
  return {
    decode: Number,
    encode(value) {
      const number = typeof value === "bigint" ? Number(value) : value;
      if (typeof number !== "number" || !Number.isInteger(number)) throw wrong("a whole number", value);
      if (number < least || number > most) throw new WrongValue(`${number} is not between ${least} and ${most}`);
      return String(number);
    },
  };
}

const BIGINT: ValueCodec = {
  decode: BigInt,
  encode(value) {
    const exact = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
    if (!exact) throw wrong("a bigint or a whole number up to 2^53", value);
    const integer = BigInt(value);
    if (BigInt.asIntN(64, integer) !== integer) throw new WrongValue(`${integer} does not fit into 64 bits`);
    return integer.toString();
  },
};

const FLOAT: ValueCodec = {
  decode: Number,
  encode(value) {
    if (typeof value !== "number") throw wrong("a number", value);
    return Object.is(value, -0) ? "-0" : String(value);
  },
};

const BOOLEAN: ValueCodec = {
  decode: (text) => text === "t",
  encode(value) {
    if (typeof value !== "boolean") throw wrong("true or false", value);
    return value ? "t" : "f";
  },
};

const NUMERIC_TEXT = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|infinity)$|^nan$/i;

const NUMERIC: ValueCodec = {
  decode: (text) => text,
  encode(value) {
    const text = typeof value === "number" || typeof value === "bigint" ? String(value) : value;
    if (typeof text !== "string" || !NUMERIC_TEXT.test(text)) throw wrong("a number, or the text of one", value);
    return text;
  },
};

const TEXT: ValueCodec = {
  decode: (text) => text,
  encode(value) {
    if (typeof value !== "string") throw wrong("text", value);
    return storable(value);
  },
};

const JSON_TEXT: ValueCodec = {
  decode: (text) => text,
  encode(value) {
    if (typeof value === "string") return storable(value);
    if (typeof value !== "object" || value === null) throw wrong("JSON as text, an object or an array", value);
    try {
      return JSON.stringify(value);
    } catch (error) {
      throw new WrongValue(`it cannot become JSON (${(error as Error).message})`);
    }
  },
};

function arrayOf(element: ValueCodec): ValueCodec {
  return {
    decode(text) {
      const texts = parseArrayText(text);
      return texts === undefined ? text : texts.map((item) => (item === null ? null : element.decode(item)));
    },
    encode(value) {
      // Multi-dimensional arrays arrive as text and may leave as text.
      if (typeof value === "string" && /^[{[]/.test(value)) return storable(value);
      if (!Array.isArray(value)) throw wrong("an array", value);
      return formatArrayText(value.map((item) => (item === null ? null : element.encode(item))));
    },
  };
}

const CODECS: Readonly<Record<string, ValueCodec>> = {
  boolean: BOOLEAN,
  smallint: wholeNumber(-32_768, 32_767),
  integer: wholeNumber(-2_147_483_648, 2_147_483_647),
  bigint: BIGINT,
  real: FLOAT,
  "double precision": FLOAT,
  numeric: NUMERIC,
  json: JSON_TEXT,
  jsonb: JSON_TEXT,
};

/** The types whose arrays are known to use a comma; extensions may use another separator, so their arrays stay text. */
const COMMA_SEPARATED = new Set([
  ...Object.keys(CODECS),
  "text",
  "character varying",
  "character",
  "name",
  "uuid",
  "date",
  "timestamp without time zone",
  "timestamp with time zone",
  "time without time zone",
  "time with time zone",
  "interval",
]);

/** Node.js 20 has it; the compiler's library does not yet. */
interface WellFormed {
  isWellFormed(): boolean;
}

/** PostgreSQL stores no NUL, and UTF-8 has no lone surrogates: better refused here than replaced silently. */
function storable(text: string): string {
  if (text.includes("\0")) throw new WrongValue("it has a NUL character, which PostgreSQL cannot store");
  if (!(text as unknown as WellFormed).isWellFormed()) throw new WrongValue("it has half of a surrogate pair");
  return text;
}

function wrong(expected: string, value: unknown): WrongValue {
  const got = Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
  return new WrongValue(`expected ${expected}, got ${got === "string" ? "text" : got}`);
}
