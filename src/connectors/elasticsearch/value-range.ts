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

function byWhole(a: string, b: string): number {
  const [left, right] = [BigInt(a || "0"), BigInt(b || "0")];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A value of a document as PostgreSQL prints it, so that both sides of a report look the same. */
export function textOf({ type }: Column, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return value ? "t" : "f";
  if (typeof value !== "string") return typeof value === "number" ? String(value) : JSON.stringify(value);
  return type.startsWith("timestamp") ? value.replace("T", " ").replace(/Z$/, "+00") : value;
}
