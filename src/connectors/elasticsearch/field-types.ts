import type { Column } from "../../domain/row.ts";

/** Which field of an index a column becomes, and how its value is written. Types are as `format_type` prints them. */

export interface FieldType {
  readonly mapping: (dialect: Dialect) => Readonly<Record<string, unknown>>;
  /** The JSON text of a value that is not null. */
  readonly toJson: (text: string) => string;
}

/** The two products differ in the name of one type. */
export type Dialect = "elasticsearch" | "opensearch";

/** Longer values can be found by their words, but not as a whole: a term has at most 32,766 bytes. */
const LONGEST_TERM = 8191;

const quote = JSON.stringify as (text: string) => string;
const plain = (type: string, toJson: FieldType["toJson"]): FieldType => ({ mapping: () => ({ type }), toJson });

/** Every JSON parser reads this many digits exactly; a longer number is sent as text, which the index accepts, too. */
const EXACT_NUMBER = /^-?(?=(?:\d\.?){1,15}$)(?:0|[1-9]\d*)(?:\.\d+)?$/;
const number = (text: string): string => (EXACT_NUMBER.test(text) ? text : quote(text));

/** The shortest text that is read back as the same value, as PostgreSQL prints it; NaN and infinity are no numbers. */
const FLOAT = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/;
const float = (text: string): string => (FLOAT.test(text) ? text : quote(text));

const TIMESTAMP = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d(?::\d\d(?::\d\d)?)?)?$/;

/** `2024-01-02 03:04:05.123456+00` → `2024-01-02T03:04:05.123456Z`; the index refuses what has no such form. */
function timestamp(text: string): string {
  const [, day, time, zone] = TIMESTAMP.exec(text) ?? [];
  if (day === undefined) return quote(text);
  const offset = zone === undefined ? "" : zone === "+00" ? "Z" : zone.length === 3 ? `${zone}:00` : zone;
  return `"${day}T${time}${offset}"`;
}

/** Line breaks can only stand between the values of JSON, and a document is one line. */
const json = (text: string): string => text.replace(/[\r\n]+/g, " ");

const KEYWORD: FieldType = {
  mapping: () => ({ type: "keyword", ignore_above: LONGEST_TERM }),
  toJson: quote,
};

const TEXT: FieldType = {
  mapping: () => ({ type: "text", fields: { keyword: { type: "keyword", ignore_above: LONGEST_TERM } } }),
  toJson: quote,
};

/** One field, whatever is in it: documents of any shape fit, and none of them can make the mapping grow. */
const JSON_DOCUMENT: FieldType = {
  mapping: (dialect) => ({ type: dialect === "opensearch" ? "flat_object" : "flattened" }),
  toJson: json,
};

const TYPES: Readonly<Record<string, FieldType>> = {
  text: TEXT,
  "character varying": TEXT,
  character: TEXT,
  citext: TEXT,
  smallint: plain("short", number),
  integer: plain("integer", number),
  bigint: plain("long", number),
  numeric: plain("double", number),
  real: plain("float", float),
  "double precision": plain("double", float),
  boolean: plain("boolean", (text) => (text === "t" || text === "true" ? "true" : "false")),
  date: plain("date", quote),
  "timestamp with time zone": plain("date_nanos", timestamp),
  "timestamp without time zone": plain("date_nanos", timestamp),
  bytea: plain("binary", (text) => `"${Buffer.from(text.slice(2), "hex").toString("base64")}"`),
  json: JSON_DOCUMENT,
  jsonb: JSON_DOCUMENT,
};

export function fieldType({ type }: Column): FieldType {
  const isArray = type.endsWith("[]");
  // `timestamp(3) with time zone[]` → `timestamp with time zone`
  const name = type.replace(/(?:\[\])+$/, "").replace(/\([-\d,]*\)/, "");
  const element = TYPES[name] ?? KEYWORD;
  return isArray ? { ...element, toJson: (text) => arrayJson(text, element.toJson) } : element;
}

/** A text that is not a value of its type; PostgreSQL never prints one, but a code task may return one. */
export class MalformedValue extends Error {}

/** PostgreSQL's text of an array, of any number of dimensions, as JSON. */
function arrayJson(text: string, element: FieldType["toJson"]): string {
  // Explicit bounds stand before it: `[0:1]={a,b}`.
  let at = text.indexOf("{");
  const requireMore = (): void => {
    if (at < 0 || at >= text.length) throw new MalformedValue("it is not the text of an array");
  };
  const readElement = (): string => {
    if (text[at] === "{") return readArray();
    if (text[at] === '"') {
      let value = "";
      for (at += 1; text[at] !== '"'; at += 1) {
        requireMore();
        if (text[at] === "\\") at += 1;
        value += text[at];
      }
      at += 1;
      return element(value);
    }
    const start = at;
    while (text[at] !== "," && text[at] !== "}") {
      requireMore();
      at += 1;
    }
    const value = text.slice(start, at);
    return value === "NULL" ? "null" : element(value);
  };
  const readArray = (): string => {
    const items: string[] = [];
    for (at += 1; text[at] !== "}"; ) {
      requireMore();
      items.push(readElement());
      if (text[at] === ",") at += 1;
    }
    at += 1;
    return `[${items.join(",")}]`;
  };
  requireMore();
  return readArray();
}
