import { type Fields, isObject, namesIn, textOf } from "../sql-guard/tree.ts";
import { columnExpression, type Expression, type FromLeaf, type SourceText } from "./model.ts";
import { spend } from "./work.ts";

/** What names mean at a place of the query. */

export interface NameScope {
  /** Grows while a FROM is read from left to right. */
  readonly leaves: FromLeaf[];
  /** Columns that USING made one, by their name without a table. */
  readonly merged: Map<string, Expression>;
  readonly outer: NameScope | undefined;
}

export function innerScope(outer: NameScope | undefined): NameScope {
  return { leaves: [], merged: new Map(), outer };
}

/** PostgreSQL writes a column of the only relation without its table (since 18), and a merged one always. */
export function columnOf(names: readonly string[], scope: NameScope | undefined): Expression | undefined {
  if (scope === undefined) return undefined;
  spend(scope.leaves.length);
  const [first = "", second] = names;
  if (second !== undefined) {
    const leaf = scope.leaves.find(({ alias }) => alias === first);
    if (leaf === undefined) return columnOf(names, scope.outer);
    return names.length === 2 && hasColumn(leaf, second) ? columnExpression(leaf, second) : undefined;
  }
  const merged = scope.merged.get(first);
  if (merged !== undefined) return merged;
  const [leaf, another] = scope.leaves.filter((one) => hasColumn(one, first));
  if (leaf === undefined) return columnOf(names, scope.outer);
  return another === undefined ? columnExpression(leaf, first) : undefined;
}

function hasColumn({ columns }: FromLeaf, name: string): boolean {
  return columns === undefined || columns.includes(name);
}

export function leafOf(name: string, scope: NameScope | undefined): FromLeaf | undefined {
  return scope === undefined
    ? undefined
    : (scope.leaves.find(({ alias }) => alias === name) ?? leafOf(name, scope.outer));
}

export function isVisible(leaf: FromLeaf, scope: NameScope | undefined): boolean {
  return scope !== undefined && (scope.leaves.includes(leaf) || isVisible(leaf, scope.outer));
}

/** A common table expression, with what its own names mean. */
export interface CteEntry {
  readonly select: Fields;
  readonly columns: readonly string[];
  readonly scope: NameScope | undefined;
  readonly ctes: CteScope | undefined;
  readonly source: SourceText;
}

export interface CteScope {
  readonly names: ReadonlyMap<string, CteEntry>;
  readonly outer: CteScope | undefined;
}

export function cteOf(name: string, ctes: CteScope | undefined): CteEntry | undefined {
  return ctes === undefined ? undefined : (ctes.names.get(name) ?? cteOf(name, ctes.outer));
}

/** Each sees those before it, or all of them if recursive. */
export function withCtes(
  withClause: unknown,
  outer: CteScope | undefined,
  place: Pick<CteEntry, "scope" | "source">,
): CteScope | undefined {
  if (!isObject(withClause)) return outer;
  const isRecursive = withClause["recursive"] === true;
  const all = new Map<string, CteEntry>();
  let visible: CteScope = { names: isRecursive ? all : new Map(), outer };
  for (const node of Array.isArray(withClause["ctes"]) ? withClause["ctes"] : []) {
    const { ctename, ctequery, aliascolnames } = (node as { CommonTableExpr?: Fields }).CommonTableExpr ?? {};
    const entry = { ...place, select: selectOf(ctequery), columns: namesIn(aliascolnames), ctes: visible };
    all.set(textOf(ctename), entry);
    if (!isRecursive) visible = { names: new Map(all), outer };
  }
  return { names: all, outer };
}

export function selectOf(node: unknown): Fields {
  const select = isObject(node) ? node["SelectStmt"] : undefined;
  return isObject(select) ? select : {};
}

/** The first columns may have other names than they had. */
export function renamed(own: readonly string[], aliases: readonly string[]): readonly string[] {
  return own.map((name, index) => aliases[index] ?? name);
}
