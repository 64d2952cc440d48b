import { quoteLiteral } from "../../postgres/identifiers.ts";

/**
 * Which values of one type a column of another takes. One rule for every data path: a value arrives as it is, or its row
 * is refused; it is never changed. If the types alone show that a value could be changed (rounded, cut), or that
 * PostgreSQL would not assign it, the pair does not fit at all, and a run ends before its first row.
 */
export type Fit = "same" | Conversion | Misfit;

/** Values are staged as the query gives them, and converted by SQL: by the same expression on every path. */
export interface Conversion {
  /** The type in the stage. */
  readonly staged: string;
  /** The value as the target stores it. */
  convert(value: string): string;
  /** True for a value that the target cannot take as it is; absent where there is none. */
  readonly refuses?: (value: string) => string;
  /** Why it cannot, to follow the column's name: "is longer than 3 characters". */
  readonly reason?: string;
}

interface Misfit {
  readonly misfit: string;
}

interface SourceType {
  readonly type: string;
  readonly plainType?: string;
}

interface TargetType {
  readonly type: string;
  /** Of a domain: its base type. */
  readonly baseType?: string;
  /** Of an enum. */
  readonly labels?: readonly string[] | undefined;
}

export function fitOf(source: SourceType, target: TargetType): Fit {
  const base = target.baseType ?? target.type;
  const plain = source.plainType ?? source.type;
  if (source.type === target.type || plain === base) return "same";
  // A type that only the source knows is staged as its text.
  const staged = isBuiltIn(plain) ? plain : "text";
  const rule =
    target.labels === undefined ? conversionOf(parseType(plain), parseType(base)) : toLabel(plain, target.labels);
  if (typeof rule === "string") return { misfit: rule };
  const { via = "", refuses, reason } = rule;
  return {
    staged,
    convert: (value) => `${value}${via}::${target.type}`,
    ...(refuses !== undefined && { refuses }),
    ...(reason !== undefined && { reason }),
  };
}

/** For types outside pg_catalog, `format_type` also prints the schema. */
export function isBuiltIn(type: string): boolean {
  return !/[."]/.test(type) || type.startsWith('"char"');
}

interface ParsedType {
  /** Without modifier and brackets: `timestamp without time zone`. */
  readonly name: string;
  readonly modifier: readonly number[];
  readonly isArray: boolean;
}

function parseType(type: string): ParsedType {
  if (!isBuiltIn(type)) return { name: type, modifier: [], isArray: false };
  const isArray = type.endsWith("[]");
  const [, before = "", modifier, after = ""] = /^([^([]*)(?:\(([-\d,]+)\))?([^[]*)/.exec(type) ?? [];
  return { name: before + after, modifier: (modifier ?? "").split(",").filter(Boolean).map(Number), isArray };
}

/** A string says why there is no rule. */
type Rule = { readonly via?: string; readonly refuses?: (value: string) => string; readonly reason?: string } | string;

const FITS: Rule = {};
const NO_ASSIGNMENT = "PostgreSQL cannot assign such a value to it";
const ROUNDS = "values could be rounded";
const CUTS = "values could be cut";

function conversionOf(source: ParsedType, target: ParsedType): Rule {
  if (isText(target)) return toText(source, target);
  if (source.isArray || target.isArray) return toArray(source, target);
  const rules = CONVERSIONS[source.name];
  return rules?.(source, target) ?? NO_ASSIGNMENT;
}

/** Element by element; a single element cannot be refused. */
function toArray(source: ParsedType, target: ParsedType): Rule {
  if (!source.isArray || !target.isArray) return NO_ASSIGNMENT;
  const rule = conversionOf({ ...source, isArray: false }, { ...target, isArray: false });
  if (typeof rule === "string") return rule;
  return rule.refuses === undefined ? FITS : "elements could be too large or too long";
}

const CONVERSIONS: Readonly<Record<string, (source: ParsedType, target: ParsedType) => Rule | undefined>> = {
  smallint: fromInteger,
  integer: fromInteger,
  bigint: fromInteger,
  numeric: fromNumeric,
  real: (_, target) => fromFloat(target) ?? (target.name === "double precision" ? FITS : undefined),
  "double precision": (_, target) => fromFloat(target) ?? (target.name === "real" ? ROUNDS : undefined),
  date: (_, { name }) => (name.startsWith("timestamp ") ? FITS : undefined),
  "timestamp without time zone": fromTimestamp,
  "timestamp with time zone": fromTimestamp,
  "time without time zone": fromTime,
  "time with time zone": fromTime,
  interval: (_, target) => toInterval(target),
  json: (_, { name }) => (name === "jsonb" ? FITS : undefined),
  jsonb: (_, { name }) => (name === "json" ? FITS : undefined),
  bit: (_, { name, modifier }) => (name === "bit varying" && modifier.length === 0 ? FITS : undefined),
  "bit varying": (_, { name, modifier }) => (name === "bit varying" && modifier.length === 0 ? FITS : undefined),
  cidr: (_, { name }) => (name === "inet" ? FITS : undefined),
};

const INTEGERS: Readonly<Record<string, { readonly digits: number; readonly least: string; readonly most: string }>> = {
  smallint: { digits: 5, least: "-32768", most: "32767" },
  integer: { digits: 10, least: "-2147483648", most: "2147483647" },
  bigint: { digits: 19, least: "-9223372036854775808", most: "9223372036854775807" },
};

/**
 * True when both sort in the same order, so that a range of one is a range of the other. A type of that name in another
 * database may sort differently, as an enum may, and the writer may not be allowed to name it.
 */
export function sortAlike(source: string, target: string): boolean {
  return (source === target && isBuiltIn(source)) || (source in INTEGERS && target in INTEGERS);
}

function fromInteger(source: ParsedType, target: ParsedType): Rule | undefined {
  const digits = INTEGERS[source.name]?.digits ?? 0;
  const narrower = INTEGERS[target.name];
  if (narrower !== undefined) return narrower.digits >= digits ? FITS : withinRange(target);
  if (target.name === "numeric") return withinDigits(digits, 0, target);
  if (target.name === "double precision") return source.name === "bigint" ? ROUNDS : FITS;
  if (target.name === "real") return source.name === "smallint" ? FITS : ROUNDS;
  return undefined;
}

function fromNumeric({ modifier }: ParsedType, target: ParsedType): Rule | undefined {
  const [precision, scale = 0] = modifier;
  if (target.name in INTEGERS) return precision === undefined || scale > 0 ? ROUNDS : withinRange(target);
  if (target.name === "real" || target.name === "double precision") return ROUNDS;
  if (target.name !== "numeric") return undefined;
  if (precision === undefined) return target.modifier.length === 0 ? FITS : ROUNDS;
  return withinDigits(precision - scale, scale, target);
}

function withinRange({ name }: ParsedType): Rule {
  const { least, most } = INTEGERS[name] ?? { least: "0", most: "0" };
  return { refuses: (value) => `${value} NOT BETWEEN ${least} AND ${most}`, reason: `is out of the range of ${name}` };
}

/** `digits` before the point and `scale` after it, into a numeric. */
function withinDigits(digits: number, scale: number, { modifier: [precision, places = 0] }: ParsedType): Rule {
  if (precision === undefined) return FITS;
  if (places < scale) return ROUNDS;
  const room = precision - places;
  if (digits <= room) return FITS;
  return {
    refuses: (value) => `${value}::numeric <> 'NaN' AND abs(${value}::numeric) >= 1e${room}`,
    reason: `has more than ${Math.max(0, room)} digits before the point`,
  };
}

/** A cast to numeric keeps 15 digits. */
function fromFloat({ name }: ParsedType): Rule | undefined {
  return name in INTEGERS || name === "numeric" ? ROUNDS : undefined;
}

/** Microseconds, unless the type says otherwise. */
const FINEST = 6;

/** Sessions are in UTC on both sides, so a moment keeps its value with and without a zone. */
function fromTimestamp({ modifier: [places = FINEST] }: ParsedType, target: ParsedType): Rule | undefined {
  if (target.name === "date" || target.name.startsWith("time ")) return CUTS;
  if (!target.name.startsWith("timestamp ")) return undefined;
  return (target.modifier[0] ?? FINEST) >= places ? FITS : ROUNDS;
}

function fromTime(source: ParsedType, target: ParsedType): Rule | undefined {
  if (!target.name.startsWith("time ")) return undefined;
  if (source.name === "time with time zone" && target.name !== source.name) return CUTS;
  return (target.modifier[0] ?? FINEST) >= (source.modifier[0] ?? FINEST) ? FITS : ROUNDS;
}

function toInterval({ name, modifier }: ParsedType): Rule | undefined {
  if (!name.startsWith("interval")) return undefined;
  return name === "interval" && modifier.length === 0 ? FITS : CUTS;
}

const TEXTS = new Set(["text", "character varying", "character", "bpchar"]);

function isText({ name, isArray }: ParsedType): boolean {
  return TEXTS.has(name) && !isArray;
}

/** Everything has a text. `character` is padded: a longer one always loses something, if only blanks. */
function toText(source: ParsedType, target: ParsedType): Rule {
  const [length] = target.modifier;
  const isPadded = source.name === "character" && !source.isArray;
  const [known] = isText(source) ? source.modifier : [];
  if (isPadded) return length === undefined || (known ?? 1) <= length ? { via: "::text" } : CUTS;
  if (length === undefined) return target.name === "bpchar" ? withoutTrailingBlanks() : { via: "::text" };
  if (target.name === "character") return withoutTrailingBlanks(length);
  if (known !== undefined && known <= length) return FITS;
  return {
    via: "::text",
    refuses: (value) => `char_length(${value}::text) > ${length}`,
    reason: `is longer than ${length} characters`,
  };
}

/** `character` drops trailing blanks. */
function withoutTrailingBlanks(length?: number): Rule {
  const isLonger = (value: string): string =>
    length === undefined ? "" : `char_length(${value}::text) > ${length} OR `;
  return {
    via: "::text",
    refuses: (value) => `${isLonger(value)}${value}::text LIKE '% '`,
    reason: length === undefined ? "ends with a blank" : `is longer than ${length} characters, or ends with a blank`,
  };
}

/** A label arrives as it is, or is not one of the target's. */
function toLabel(plain: string, labels: readonly string[]): Rule {
  if (!isText(parseType(plain))) return NO_ASSIGNMENT;
  return {
    via: "::text",
    refuses: (value) => `${value}::text <> ALL (ARRAY[${labels.map(quoteLiteral).join(", ")}]::text[])`,
    reason: "is not among the values of the target's type",
  };
}
