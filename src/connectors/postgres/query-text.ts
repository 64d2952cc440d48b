import type { ScanPosition } from "../../domain/checkpoint.ts";
import type { Column } from "../../domain/row.ts";
import { placeAfter, type TextPlace } from "../../domain/text-place.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import type { KeyChoice, ReadRequest } from "../source.ts";

/** How the user's query is wrapped. Values come as literals with a cast, because COPY takes no parameters. */

/** The query stands on lines of its own: a trailing comment must not swallow the bracket. */
export function asSubquery(query: string): string {
  return `(\n${query.trim().replace(/;\s*$/, "")}\n) AS q`;
}

/**
 * Where in the query the character `position` of `asSubquery` stands. Positions count from 1, in characters, not in
 * JavaScript's UTF-16 units. What lies past the end, such as a missing bracket, counts as its end.
 */
export function placeInQuery(query: string, position: number): TextPlace | undefined {
  const characters = [...query.trimEnd()];
  const indent = query.length - query.trimStart().length;
  const index = Math.min(position - 1 - "(\n".length + indent, characters.length);
  return index < indent ? undefined : placeAfter(characters.slice(0, index).join(""));
}

/** A column to order by: text sorts by bytes, because the rules of languages change between server versions. */
export interface OrderColumn extends Column {
  readonly collatable: boolean;
}

function expression({ name, collatable }: OrderColumn, alias: string): string {
  return `${alias}.${quoteIdentifier(name)}${collatable ? ' COLLATE "C"' : ""}`;
}

function literal(value: string, { type, collatable }: OrderColumn): string {
  return `${quoteLiteral(value)}::${type}${collatable ? ' COLLATE "C"' : ""}`;
}

function orderBy(order: readonly OrderColumn[], alias = "q"): string {
  return order.map((column) => expression(column, alias)).join(", ");
}

/** Rows after a position. One that names only the first columns stands before all rows that begin with it. */
export function behind(position: ScanPosition, order: readonly OrderColumn[], alias = "q", inclusive = false): string {
  const bound = order.slice(0, position.length);
  const operator = inclusive || bound.length < order.length ? ">=" : ">";
  const values = bound.map((column, index) => literal(position[index] as string, column));
  return `(${orderBy(bound, alias)}) ${operator} (${values.join(", ")})`;
}

/** Rows up to a position, itself included. */
export function upTo(position: ScanPosition, order: readonly OrderColumn[], alias = "q"): string {
  return compareAll("<=", position, order, alias);
}

/** Rows at a position, however their values are written: 1.0 is 1.00. */
export function at(position: ScanPosition, order: readonly OrderColumn[], alias: string): string {
  return compareAll("=", position, order, alias);
}

function compareAll(operator: string, position: ScanPosition, order: readonly OrderColumn[], alias: string): string {
  const values = order.map((column, index) => literal(position[index] as string, column));
  return `(${orderBy(order, alias)}) ${operator} (${values.join(", ")})`;
}

function isOneOf({ columns: names, keys, byText }: KeyChoice, columns: readonly Column[]): string {
  const typeOf = (name: string): string => columns.find((column) => column.name === name)?.type ?? "text";
  const cast = names.map((name) => (byText ? "text" : typeOf(name)));
  const values = keys.map((key) => `(${key.map((value, n) => `${quoteLiteral(value)}::${cast[n]}`).join(", ")})`);
  const named = names.map((name) => `q.${quoteIdentifier(name)}`).map((value) => (byText ? asPrinted(value) : value));
  return `(${named.join(", ")}) IN (${values.join(", ")})`;
}

/** The text in which a value is read: a cast makes `true` of t, and cuts the blanks of a char(3). */
const asPrinted = (value: string): string => `CASE WHEN num_nulls(${value}) = 0 THEN format('%s', ${value}) END`;

const isNull = ({ name }: OrderColumn): string => `q.${quoteIdentifier(name)} IS NULL`;
const isNotNull = ({ name }: OrderColumn): string => `q.${quoteIdentifier(name)} IS NOT NULL`;

/**
 * Rows that lack an ordering column other than the first compare with nothing, so no position may skip them. The first
 * column stands by itself, so that an index can be entered by it.
 */
function behindOrUnknown(position: ScanPosition, order: readonly OrderColumn[], inclusive: boolean): string {
  const [first, ...rest] = order;
  const past = behind(position, order, "q", inclusive);
  if (first === undefined || rest.length === 0 || position.length === 1) return past;
  return `${behind(position.slice(0, 1), [first], "q", true)} AND (${past} OR ${rest.map(isNull).join(" OR ")})`;
}

export function readStatement(
  request: ReadRequest,
  order: readonly OrderColumn[],
  direction: "ASC" | "DESC" = "ASC",
): string {
  const { query, columns, after, until = null, only, inclusive, nulls } = request;
  const names = columns.map(({ name }) => `q.${quoteIdentifier(name)}`).join(", ");
  const first = order.slice(0, 1);
  const conditions: string[] = [];
  const past = (position: ScanPosition): string =>
    nulls === "excluded" || nulls === "first"
      ? behindOrUnknown(position, order, inclusive)
      : behind(position, order, "q", inclusive);
  if (after !== null && after.length > 0) {
    conditions.push(nulls === "first" ? `(${past(after)} OR ${first.map(isNull).join(" OR ")})` : past(after));
  }
  // Where nothing is null, an index leads up to it, too.
  const isWhole = nulls === "none" && !inclusive && until?.length === order.length;
  if (until !== null) conditions.push(isWhole ? upTo(until, order) : `(${past(until)}) IS NOT TRUE`);
  if (only !== undefined) conditions.push(isOneOf(only, columns));
  if (nulls === "excluded") conditions.push(...first.map(isNotNull));
  if (nulls === "none") conditions.push(...order.map(isNotNull));
  if (nulls === "only") conditions.push(...first.map(isNull));
  // A row without a key comes after every position: it must be read and refused, not skipped.
  const orMissing = order.map(isNull).join(" OR ");
  const filter =
    nulls === "last" && conditions.length > 0
      ? `(${conditions.join(" AND ")}) OR ${orMissing}`
      : conditions.join(" AND ");
  const direct = (column: OrderColumn, index: number): string =>
    `${expression(column, "q")} ${direction}${nulls === "first" && index === 0 ? " NULLS FIRST" : ""}`;
  return [
    `SELECT ${names} FROM ${asSubquery(query)}`,
    filter === "" ? "" : `WHERE ${filter}`,
    order.length === 0 ? "" : `ORDER BY ${order.map(direct).join(", ")}`,
  ].join("\n");
}
