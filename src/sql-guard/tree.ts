import { type ParseResult, parse, SqlError } from "libpg-query";
import { byteOffset, type GuardFinding } from "./refusal.ts";

/** The raw tree of PostgreSQL's own parser, and how to read it. */

/** `{ RangeVar: { … } }` where any kind may stand, and `{ … }` alone where only one kind can. */
export type Fields = Readonly<Record<string, unknown>>;

export interface Statement {
  readonly node: Fields;
  readonly start: number;
  /** Where its semicolon is. */
  readonly end: number | undefined;
}

/** The statements of a text, or why PostgreSQL cannot read it. */
export async function statementsOf(query: string): Promise<readonly Statement[] | GuardFinding> {
  // The parser refuses an empty text by itself, but returns no statements for a text of comments.
  if (query === "") return [];
  try {
    const { stmts = [] }: ParseResult = await parse(query);
    return stmts.map(({ stmt, stmt_location: start = 0, stmt_len: length }) => ({
      node: (stmt ?? {}) as Fields,
      start,
      end: length === undefined ? undefined : start + length,
    }));
  } catch (error) {
    if (!(error instanceof SqlError)) return { what: "the query is too complicated to be checked" };
    const offset = byteOffset(query, error.sqlDetails?.cursorPosition ?? 0);
    return { offset, what: `PostgreSQL cannot read the query: ${error.message}` };
  }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A qualified name: `["pg_catalog", "int4"]`. */
export function namesIn(list: unknown): readonly string[] {
  if (!Array.isArray(list)) return [];
  return list.map((item) => textOf((item as { String?: Fields }).String?.["sval"]));
}

/** Many nodes have no location. */
export function offsetOf(node: unknown): number | undefined {
  const location = isObject(node) ? node["location"] : undefined;
  return typeof location === "number" && location >= 0 ? location : undefined;
}
