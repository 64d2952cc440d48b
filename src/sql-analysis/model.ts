import type { RelationFacts } from "./query-facts.ts";

/**
 * A query as the analysis sees it: SELECTs as blocks, with CTEs and views put in the places where they are used. Every
 * place of a table is a leaf of its own.
 */

/** A column of a leaf, named as the leaf calls it. */
export interface ColumnUse {
  readonly leaf: FromLeaf;
  readonly column: string;
}

export interface Expression {
  /** Its SQL, with the columns left open. */
  readonly parts: readonly (string | ColumnUse)[];
  /** Computed from the columns alone, without aggregates, windows, subqueries or sets; and we can print it. */
  readonly isPlain: boolean;
  /** The two sides of COALESCE(x, y), or of a column that FULL JOIN USING merges. */
  readonly either?: readonly [Expression, Expression];
  /** Of types that are not known, of which one may lose something by becoming the other. */
  readonly mayBeConverted?: boolean;
  /** Of ARRAY[x, y]: x and y. */
  readonly items?: readonly Expression[];
  /** The type that it is cast to, as `pg_type` calls it. */
  readonly castTo?: string;
  /** Equal to the value, but perhaps not the same (1.0 and 1.00): nothing can be computed from it. */
  readonly isOnlyEqual?: boolean;
}

export type FromLeaf = TableLeaf | QueryLeaf | FunctionLeaf;

interface AnyLeaf {
  readonly alias: string;
  /** Undefined where it cannot be known from the text. */
  readonly columns: readonly string[] | undefined;
  /** Where its name begins: an offset into the bytes of `source`. */
  readonly offset: number | undefined;
  readonly source: SourceText;
}

export interface TableLeaf extends AnyLeaf {
  readonly kind: "table";
  readonly relation: RelationFacts;
  readonly columns: readonly string[];
  /** Its text may be replaced by a SELECT from it: it has no ONLY and no TABLESAMPLE. */
  readonly isPlainTable: boolean;
  readonly hasAlias: boolean;
}

export interface QueryLeaf extends AnyLeaf {
  readonly kind: "query";
  readonly block: QueryBlock;
  readonly columns: readonly string[];
  readonly isLateral: boolean;
  /** A view stands here under its own name. */
  readonly view: RelationFacts | undefined;
  readonly hasAlias: boolean;
}

export interface FunctionLeaf extends AnyLeaf {
  readonly kind: "function";
  /** Not plain if it cannot be printed. */
  readonly call: Expression;
  readonly withOrdinality: boolean;
}

/** The text that offsets count in: the query's own, or that of a view. */
export interface SourceText {
  readonly text: string;
  readonly view: RelationFacts | undefined;
}

export type JoinNode =
  | { readonly kind: "leaf"; readonly leaf: FromLeaf }
  | {
      readonly kind: "join";
      /** In a left join the right side is the optional one; right joins are turned round. */
      readonly type: "inner" | "left" | "full";
      readonly left: JoinNode;
      readonly right: JoinNode;
      readonly condition: Condition;
    };
export type InnerNode = Extract<JoinNode, { kind: "join" }>;

/** What must hold for a row: the parts of an AND that the analysis understands. */
export interface Condition {
  readonly equalities: readonly Equality[];
  /** Columns that must not be null for it to hold. */
  readonly notNull: readonly ColumnUse[];
  /** Each an OR, or IN of a list: the equalities of at least one of its parts hold. */
  readonly choices: readonly Choice[];
}

export type Choice = readonly (readonly Equality[])[];

export interface Equality {
  readonly left: Expression;
  readonly right: Expression;
  /** IS NOT DISTINCT FROM. */
  readonly nullsMatch: boolean;
}

export type QueryBlock = SelectBlock | SetBlock;

export interface SelectBlock {
  readonly kind: "select";
  readonly outputs: readonly OutputExpression[];
  readonly from: JoinNode | undefined;
  readonly where: Condition;
  readonly sublinks: readonly Sublink[];
  /** Each window's PARTITION BY, and what it is called in a sentence. */
  readonly partitions: readonly Partition[];
  /** SELECT DISTINCT: one of the rows that are equal. */
  readonly isDistinct: boolean;
  /** GROUP BY, and what is used beside aggregates: by the primary key it may be more than what is grouped by. */
  readonly grouping: Grouping | undefined;
  /** Aggregates without GROUP BY: it has one row, also where nothing is joined. */
  readonly isOneGroup: boolean;
  /** Why no column of it is local, as a sentence: LIMIT, GROUPING SETS, recursion. */
  readonly notLocal: string | undefined;
}

interface Grouping {
  readonly by: readonly Expression[];
  readonly bare: readonly ColumnUse[];
  /** GROUPING SETS: rows have nulls where the tables have none, and the empty set has a row where nothing is joined. */
  readonly hasSets: boolean;
}

export interface OutputExpression {
  readonly name: string;
  readonly value: Expression;
  /** "max()" if that is what computes it, for a sentence. */
  readonly computedBy: string | undefined;
}

export interface Partition {
  readonly by: readonly Expression[];
  /** "the window of rn", "DISTINCT ON". */
  readonly of: string;
  readonly isDistinct: boolean;
}

export interface SetBlock {
  readonly kind: "set";
  readonly operation: "union" | "except" | "intersect";
  /** UNION ALL: no row stands for another. */
  readonly keepsAll: boolean;
  readonly branches: readonly [QueryBlock, QueryBlock];
  readonly names: readonly string[];
  readonly notLocal: string | undefined;
  /** It reads its own result: nothing can be said about what a row of it depends on. */
  readonly isRecursive: boolean;
}

/** A subquery in an expression. */
export interface Sublink {
  readonly block: QueryBlock;
  /** `(x, y) IN (subquery)`, where unknown counts as false: x and y. */
  readonly tests: readonly Expression[];
  /** NOT IN and ALL, or an IN that is used as a value: every row of it counts. */
  readonly every: "not in" | "value" | undefined;
  /** It uses columns of what is around it. */
  readonly dependsOnRow: boolean;
  /** It stands in the ON of an outer join, or of any join in an optional side, or in the arguments of a function in FROM. */
  readonly isMisplaced: boolean;
  /** It is computed once for a group, and not for the rows that are joined: neither in WHERE, nor in an aggregate. */
  readonly isOfGroup: boolean;
  /** The ON that it stands in. */
  readonly on: Condition | undefined;
}

export const NO_CONDITION: Condition = { equalities: [], notNull: [], choices: [] };

/** Asked for again and again, by each question about an outer join. */
const leavesKnown = new WeakMap<JoinNode, readonly FromLeaf[]>();

export function leavesOf(node: JoinNode | undefined): readonly FromLeaf[] {
  if (node === undefined) return [];
  const known = leavesKnown.get(node);
  if (known !== undefined) return known;
  const leaves = node.kind === "leaf" ? [node.leaf] : [...leavesOf(node.left), ...leavesOf(node.right)];
  leavesKnown.set(node, leaves);
  return leaves;
}

export function conditionsOf(node: JoinNode | undefined): readonly Condition[] {
  if (node === undefined || node.kind === "leaf") return [];
  return [node.condition, ...conditionsOf(node.left), ...conditionsOf(node.right)];
}

export function columnsIn(expression: Expression): readonly ColumnUse[] {
  return expression.parts.filter((part) => typeof part !== "string");
}

/** The column that an expression is, if it is nothing but one. */
export function soleColumn({ parts }: Expression): ColumnUse | undefined {
  const [only] = parts;
  return parts.length === 1 && typeof only === "object" ? only : undefined;
}

export function columnExpression(leaf: FromLeaf, column: string): Expression {
  return { parts: [{ leaf, column }], isPlain: true };
}

export function isSameExpression(one: Expression, other: Expression): boolean {
  return (
    one.parts.length === other.parts.length &&
    one.parts.every((part, index) => {
      const counterpart = other.parts[index];
      if (typeof part === "string" || typeof counterpart !== "object") return part === counterpart;
      return part.leaf === counterpart.leaf && part.column === counterpart.column;
    })
  );
}

/** The columns of a block, by position. */
export function outputNames(block: QueryBlock): readonly string[] {
  return block.kind === "set" ? block.names : block.outputs.map(({ name }) => name);
}
