import { VitrinaError } from "./error-catalogue.ts";

/**
 * Where an incremental load starts and ends. A row can become visible after the cursor passed its place: it was
 * written earlier by a transaction that committed later. So the next load starts not where this one stopped, but at
 * the horizon: a moment before which no transaction can still reveal rows.
 */

/** The next load reads from here: `value` alone means from that value on, with `id` after that exact row. */
export interface Watermark {
  readonly value: string | null;
  readonly id: string | null;
}

export const NO_WATERMARK: Watermark = { value: null, id: null };

export interface Horizon {
  /** Every transaction that could still reveal older rows started after this moment (timestamptz as text). */
  readonly safe: string;
  readonly now: string;
  /** `look-back`: transactions in flight cannot be seen, so a fixed time is allowed for instead. */
  readonly method: "in-flight" | "look-back";
  /** Why it had to be a look-back. */
  readonly reason: string | null;
  /** For a key that is not a time: every row up to this value is visible to a read that begins now. Null: not known. */
  readonly ceiling: string | null;
  /** For a key that is not a time: the load would start after every existing row. */
  readonly behindAll: boolean;
}

/** A position that becomes the watermark once every transaction that was alive at `at` has ended. */
export interface Candidate extends Watermark {
  readonly at: string;
}

export interface CursorRules {
  readonly key: string;
  readonly idKey: string | null;
  readonly nulls: "reject" | "exclude" | "each_run";
  readonly lookbackNumbers: number;
  /** Where the load would start: a person may have set it to anything. */
  readonly start?: Watermark;
}

/** Rows without the key, as far as the source could tell in advance. */
export type KnownNulls =
  | "none"
  /** The pipeline says what becomes of them. */
  | "allowed"
  /** Finding out would take as long as the load: it refuses them when it meets one. */
  | "unknown";

export function cursorIsNull(key: string): VitrinaError {
  return new VitrinaError("CURSOR_NULL", `The query returns rows whose "${key}" is null.`);
}

/** What is known when an incremental load has read everything. */
export interface EndOfLoad {
  readonly keyType: string;
  readonly previous: Watermark;
  readonly candidate: Candidate | null;
  /** The last row read; null when there was none. */
  readonly reached: Watermark | null;
  readonly safe: string;
  /** As the horizon gave it before the first read. */
  readonly ceiling: string | null;
}

export interface NextStart {
  readonly watermark: Watermark;
  readonly candidate: Candidate | null;
}

const TIME_TYPES = /^(timestamp|date\b)/;
const REFUSED_TYPES: Readonly<Record<string, string>> = {
  uuid: "random ids do not grow, so new rows could end up before the cursor",
  "double precision": "floating-point numbers do not sort exactly",
  real: "floating-point numbers do not sort exactly",
  boolean: "it has only two values",
  json: "it has no order",
  jsonb: "its order means nothing",
};

/** Timestamps can be compared with the horizon; other keys go the longer way through a candidate. */
export function isTimeType(type: string): boolean {
  return TIME_TYPES.test(type);
}

const NUMBER_TYPES = /^(smallint|integer|bigint|numeric\b)/;

export function isNumberType(type: string): boolean {
  return NUMBER_TYPES.test(type);
}

/** `count` numbers before `value`, or up to one more: the decimals are not worth exact arithmetic. */
export function numbersBefore(value: string, count: number): string {
  const [, whole] = /^(-?\d+)(?:\.\d+)?$/.exec(value) ?? [];
  if (whole === undefined || count === 0) return value;
  return String(BigInt(whole) - BigInt(count) - (value === whole ? 0n : 1n));
}

export function cursorTypeProblem(column: string, type: string): VitrinaError | undefined {
  const reason = REFUSED_TYPES[type] ?? (type.endsWith("[]") ? "lists have no useful order" : undefined);
  if (reason === undefined) return undefined;
  return new VitrinaError(
    "CURSOR_UNUSABLE",
    `"${column}" is of type ${type}; it cannot be the incremental_key: ${reason}.`,
  );
}

/** What PostgreSQL prints of a date or a timestamp in the sessions that read. Longer years and BC do not matter here. */
const TIME_TEXT = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?)?$/;

/** Seconds since 1970 of a watermark that is a time; without a zone it is taken as UTC. Undefined for any other. */
export function watermarkSeconds(value: string): number | undefined {
  const [, date, time = "00:00:00"] = TIME_TEXT.exec(value) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}Z`);
  return Number.isNaN(ms) ? undefined : ms / 1000;
}
