import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { Connected } from "./connect.ts";
import type { ImagesOf } from "./follow-plan.ts";
import {
  type ColumnUse,
  columnsIn,
  type Equality,
  type Expression,
  type FromLeaf,
  type FunctionLeaf,
  type QueryLeaf,
  type TableLeaf,
} from "./model.ts";
import type { FactColumn, RelationFacts } from "./query-facts.ts";
import { rowsOf } from "./rows-of-query.ts";
import type { Way } from "./ways.ts";

/** Writes ways as SQL. */
export class StatementWriter {
  /** The columns of the images that were used, by table. */
  readonly imageColumns = new Map<RelationFacts, Set<string>>();
  readonly #images: ImagesOf;
  readonly #isReadWithoutOld: (relation: RelationFacts) => boolean;
  #aliases = 0;

  constructor(images: ImagesOf, isReadWithoutOld: (relation: RelationFacts) => boolean) {
    this.#images = images;
    this.#isReadWithoutOld = isReadWithoutOld;
  }

  /** The values of the wanted columns, for all changed rows at the way's beginning. */
  keys(way: Way, columns: readonly FactColumn[]): string {
    this.#aliases = 0;
    const [start] = way.leaves;
    const { from, where, text } = this.#select(way, way.wanted, start);
    const list = columns.map((column, index) => {
      const value = way.wanted[index];
      return keyValue(value === undefined ? "NULL" : text(value), column);
    });
    return `SELECT ${list.join(", ")} FROM ${from}${where.length === 0 ? "" : ` WHERE ${where.join(" AND ")}`}`;
  }

  #select(
    connected: Connected,
    outputs: readonly Expression[],
    changed: FromLeaf | undefined,
  ): { from: string; where: readonly string[]; text: (expression: Expression) => string } {
    const aliases = new Map<FromLeaf, string>();
    for (const leaf of connected.leaves) {
      aliases.set(leaf, `r${this.#aliases}`);
      this.#aliases += 1;
    }
    const text = (expression: Expression): string =>
      expression.parts
        .map((part) =>
          typeof part === "string" ? part : `${aliases.get(part.leaf)}.${quoteIdentifier(nameInItem(part))}`,
        )
        .join("");
    const used = usesIn(connected.equalities, outputs);
    const items = connected.leaves.map((leaf) => {
      const columns = used.filter((use) => use.leaf === leaf).map(nameInItem);
      return `${this.#item(leaf, [...new Set(columns)], leaf === changed, text)} AS ${aliases.get(leaf)}${columnList(leaf)}`;
    });
    const where = connected.equalities.map(({ left, right, nullsMatch }) =>
      nullsMatch ? sameOrBothNull(text(left), text(right)) : `${text(left)} = ${text(right)}`,
    );
    return { from: items.join(", "), where, text };
  }

  #item(leaf: FromLeaf, columns: readonly string[], isChanged: boolean, text: (one: Expression) => string): string {
    if (leaf.kind === "table") return this.#table(leaf, columns, isChanged);
    return leaf.kind === "query" ? this.#query(leaf, columns) : functionItem(leaf, text);
  }

  #table({ relation }: TableLeaf, columns: readonly string[], isChanged: boolean): string {
    if (isChanged) {
      this.#note(relation, columns.length > 0 ? columns : [relation.columns[0]?.name ?? ""]);
      return this.#images(relation).changed;
    }
    const list = columns.map(quoteIdentifier).join(", ");
    const present = `SELECT ${list} FROM ${quoteIdentifier(relation.schema)}.${quoteIdentifier(relation.name)}`;
    if (this.#isReadWithoutOld(relation)) return `(${present})`;
    this.#note(relation, columns);
    return `(${present} UNION ALL SELECT ${list} FROM ${this.#images(relation).old} AS o)`;
  }

  #query(leaf: QueryLeaf, columns: readonly string[]): string {
    const positions = columns.map((column) => leaf.columns.indexOf(column));
    const selects = (rowsOf(leaf.block, positions) ?? []).map((rows) => {
      const { from, where, text } = this.#select(rows, rows.outputs, undefined);
      const list = rows.outputs.map((value, index) => `${text(value)} AS ${quoteIdentifier(columns[index] ?? "")}`);
      const conditions = where.length === 0 ? "" : ` WHERE ${where.join(" AND ")}`;
      return `SELECT ${list.join(", ")}${from === "" ? "" : ` FROM ${from}`}${conditions}`;
    });
    return `(${selects.join(" UNION ALL ")})`;
  }

  #note(relation: RelationFacts, columns: readonly string[]): void {
    const known = this.imageColumns.get(relation) ?? new Set();
    this.imageColumns.set(relation, known);
    for (const column of columns) known.add(column);
  }
}

/**
 * In the type of the query's column. Keys are told apart byte by byte, as the target does: where 'A' and 'a' are equal,
 * one of them would otherwise stand for both, and the other's row would stay.
 */
export function keyValue(value: string, { name, type, hasOwnCollation }: FactColumn): string {
  return `CAST(${value} AS ${type})${hasOwnCollation ? ' COLLATE "C"' : ""} AS ${quoteIdentifier(name)}`;
}

/**
 * IS NOT DISTINCT FROM, as an index can serve it. Of a composite value whose fields are all null IS NULL is true, too: so
 * more rows may match than are meant, and never fewer. (Of ROW() it would not be so; that is no expression of ours.)
 */
function sameOrBothNull(left: string, right: string): string {
  return `(${left} = ${right} OR (${left} IS NULL AND ${right} IS NULL))`;
}

/** A table's own name of a column; a query in FROM may have given it another. */
function nameInItem({ leaf, column }: ColumnUse): string {
  return leaf.kind === "table" ? (leaf.relation.columns[leaf.columns.indexOf(column)]?.name ?? column) : column;
}

function usesIn(equalities: readonly Equality[], outputs: readonly Expression[]): readonly ColumnUse[] {
  const expressions = [...outputs, ...equalities.flatMap(({ left, right }) => [left, right])];
  const calls = expressions.flatMap((one) => columnsIn(one)).flatMap(({ leaf }) => callsOf(leaf));
  return [...expressions, ...calls].flatMap((one) => columnsIn(one));
}

function callsOf(leaf: FromLeaf): readonly Expression[] {
  if (leaf.kind !== "function") return [];
  return [leaf.call, ...columnsIn(leaf.call).flatMap((use) => callsOf(use.leaf))];
}

function functionItem({ call, withOrdinality }: FunctionLeaf, text: (one: Expression) => string): string {
  return `LATERAL ${text(call)}${withOrdinality ? " WITH ORDINALITY" : ""}`;
}

function columnList(leaf: FromLeaf): string {
  return leaf.kind === "function" ? `(${(leaf.columns ?? []).map(quoteIdentifier).join(", ")})` : "";
}
