import type { Column } from "../../domain/row.ts";

type Values = readonly (string | null)[];

/** The least and the greatest of many keys: numbers by value, everything else by bytes. */
export interface ValueRange {
  add(values: Values): void;
  least(): Values | undefined;
  greatest(): Values | undefined;
  compare(a: Values, b: Values): number;
}

const WHOLE = /^(?:smallint|integer|bigint)$/;
const BROKEN = /^(?:numeric|real|double precision)/;

export function keyRange(columns: readonly Column[]): ValueRange {
  const comparers = columns.map(({ type }) => (WHOLE.test(type) ? byWhole : BROKEN.test(type) ? byNumber : byBytes));
  const compare = (a: Values, b: Values): number => {
    for (const [index, comparer] of comparers.entries()) {
      const order = comparer(a[index] ?? "", b[index] ?? "");
      if (order !== 0) return order;
    }
    return 0;
  };
  let least: Values | undefined;
  let greatest: Values | undefined;
  return {
    compare,
    least: () => least,
    greatest: () => greatest,
    add(values) {
      if (columns.length === 0 || values.includes(null)) return;
      if (least === undefined || compare(values, least) < 0) least = values;
      if (greatest === undefined || compare(values, greatest) > 0) greatest = values;
    },
  };
}

const byBytes = (a: string, b: string): number => (a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b)));
const byNumber = (a: string, b: string): number => Number(a) - Number(b) || byBytes(a, b);

/** Others may have written 1.5 or 1e3 into the field of a whole number, too. */
const PLAIN = /^-?\d+$/;

function byWhole(a: string, b: string): number {
  if (!PLAIN.test(a) || !PLAIN.test(b)) return byNumber(a, b);
  const [left, right] = [BigInt(a), BigInt(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A value of a document, as JSON, in the words of PostgreSQL, so that both sides of a report look the same. */
export function textOf({ type }: Column, json: string | undefined): string | null {
  if (json === undefined || json === "null") return null;
  if (json === "true" || json === "false") return json.slice(0, 1);
  // A number is shown digit by digit as it was written: parsed, it would be rounded.
  if (!json.startsWith('"')) return json;
  const value = JSON.parse(json) as string;
  return type.startsWith("timestamp") ? value.replace("T", " ").replace(/Z$/, "+00") : value;
}
