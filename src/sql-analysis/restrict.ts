import { quoteIdentifier, quoteLiteral } from "../postgres/identifiers.ts";
import { type FromLeaf, type QueryBlock, type SelectBlock, soleColumn } from "./model.ts";
import { isLeaf, placesIn, type TablePlace } from "./places.ts";
import type { FactColumn, QueryFacts, RelationFacts } from "./query-facts.ts";
import { typeOfColumn } from "./types.ts";
import { waysFrom } from "./ways.ts";

/**
 * Restricts a query to some keys. Outside in any case. Inside wherever a row of a table concerns one key only, which its
 * own columns say: that is a way without any other table. Rows of it with other keys then change nothing for these.
 */

/** A condition on one table of the text: `before` and `after` stand around the keys of one key column. */
interface InnerRestriction {
  readonly start: number;
  readonly end: number;
  readonly table: string;
  /** Those that the query reads: its reader may not be allowed to read others. */
  readonly columns: string;
  readonly alias: string;
  readonly on: readonly { readonly expression: string; readonly key: number }[];
}

/** What is known from reading the query. */
interface Reading {
  /** Leaves whose row is used as a whole. */
  readonly rowsUsed: ReadonlySet<FromLeaf>;
  columnsNamed(relation: RelationFacts): ReadonlySet<string>;
}

export type KeyTexts = readonly (readonly string[])[];

export function restricter(
  facts: QueryFacts,
  key: readonly number[],
  block: QueryBlock,
  reading: Reading,
): (keys: KeyTexts) => string {
  const bytes = Buffer.from(facts.definition.replace(/;\s*$/, ""), "utf8");
  const restrictions = innerRestrictions(facts, key, block, reading, bytes);
  const columns = key.flatMap((position) => facts.columns[position] ?? []);
  return (keys) => {
    const pieces: string[] = [];
    let from = 0;
    for (const { start, end, table, columns: read, alias, on } of restrictions) {
      const conditions = on.map(({ expression, key: index }) => isOneOf(expression, columns, index, keys));
      pieces.push(bytes.subarray(from, start).toString("utf8"));
      pieces.push(`(SELECT ${read} FROM ${table} WHERE ${conditions.join(" AND ")})${alias}`);
      from = end;
    }
    const inner = [...pieces, bytes.subarray(from).toString("utf8")].join("");
    return `SELECT * FROM (\n${inner}\n) AS q WHERE ${outside(columns, keys)}`;
  };
}

function outside(columns: readonly FactColumn[], keys: KeyTexts): string {
  if (keys.length === 0) return "false";
  const names = columns.map(({ name }) => `q.${quoteIdentifier(name)}`);
  const each = names.map((name, index) => isOneOf(name, columns, index, keys));
  if (columns.length === 1) return each.join("");
  const rows = keys.map((row) => `(${columns.map(({ type }, index) => cast(row[index] ?? "", type)).join(", ")})`);
  return `${each.join(" AND ")} AND (${names.join(", ")}) IN (VALUES ${rows.join(", ")})`;
}

function isOneOf(expression: string, columns: readonly FactColumn[], index: number, keys: KeyTexts): string {
  const type = columns[index]?.type ?? "";
  const values = [...new Set(keys.map((row) => row[index] ?? ""))];
  if (values.length === 0) return "false";
  // An array of arrays would be one array of more dimensions.
  if (type.endsWith("]")) return `${expression} IN (${values.map((value) => cast(value, type)).join(", ")})`;
  const elements = values.map((value) => `"${value.replace(/["\\]/g, "\\$&")}"`);
  return `${expression} = ANY (${cast(`{${elements.join(",")}}`, `${type}[]`)})`;
}

function cast(value: string, type: string): string {
  return `CAST(${quoteLiteral(value)} AS ${type})`;
}

/** By the place in the text, in its order. A CTE that is used twice has one text: what is said about it must be the same. */
function innerRestrictions(
  facts: QueryFacts,
  key: readonly number[],
  block: QueryBlock,
  reading: Reading,
  bytes: Buffer,
): readonly InnerRestriction[] {
  const found = new Map<number, InnerRestriction | undefined>();
  for (const place of placesIn(block, true)) {
    const { offset, source } = place.leaf;
    if (offset === undefined || source.view !== undefined) continue;
    const restriction = canBeReplaced(place, reading.rowsUsed)
      ? restrictionAt(facts, key, place, offset, reading, bytes)
      : undefined;
    const known = found.get(offset);
    const isSame = !found.has(offset) || JSON.stringify(known) === JSON.stringify(restriction);
    found.set(offset, isSame ? restriction : undefined);
  }
  return [...found.values()].flatMap((one) => one ?? []).sort((one, other) => one.start - other.start);
}

/** By a SELECT from it. In a correlated subquery that would only cost. */
function canBeReplaced({ leaf, links }: TablePlace, rowsUsed: ReadonlySet<FromLeaf>): boolean {
  const isCorrelated = links.some(({ via }) => !isLeaf(via) || (via.kind === "query" && via.isLateral));
  if (isCorrelated || rowsUsed.has(leaf) || leaf.kind === "function") return false;
  if (leaf.kind === "table" && !leaf.isPlainTable) return false;
  const [inner] = links;
  return inner === undefined || !needsPrimaryKey(inner.block, leaf);
}

/** Columns beside those of GROUP BY are allowed by the primary key, which a SELECT from the table does not have. */
function needsPrimaryKey({ grouping, sublinks }: SelectBlock, leaf: FromLeaf): boolean {
  if (grouping === undefined) return false;
  if (sublinks.length > 0) return true;
  const grouped = grouping.by.flatMap((one) => soleColumn(one) ?? []);
  return grouping.bare.some(
    (use) => use.leaf === leaf && !grouped.some((one) => one.leaf === leaf && one.column === use.column),
  );
}

const NAME = String.raw`(?:"(?:[^"]|"")+"|[\w$\u0080-\uffff]+)`;
const QUALIFIED_NAME = new RegExp(`^${NAME}(?:\\.${NAME})?`);

function restrictionAt(
  facts: QueryFacts,
  key: readonly number[],
  place: TablePlace,
  start: number,
  reading: Reading,
  bytes: Buffer,
): InnerRestriction | undefined {
  const { leaf } = place;
  if (leaf.kind === "function") return undefined;
  const table = QUALIFIED_NAME.exec(bytes.subarray(start).toString("utf8"))?.[0];
  const on = key.flatMap((position, index) => {
    const expression = ownKey(place, position, facts.columns[position]);
    return expression === undefined ? [] : [{ expression, key: index }];
  });
  const relation = relationOf(leaf);
  if (table === undefined || relation === undefined || on.length === 0) return undefined;
  const columns = columnsOf(leaf, relation, reading.columnsNamed(relation));
  const alias = leaf.hasAlias ? "" : ` AS ${quoteIdentifier(leaf.alias)}`;
  return { start, end: start + Buffer.byteLength(table, "utf8"), table, columns, alias, on };
}

function relationOf(leaf: FromLeaf): RelationFacts | undefined {
  if (leaf.kind === "table") return leaf.relation;
  return leaf.kind === "query" ? leaf.view : undefined;
}

/** Columns that have other names here have these by their position. */
function columnsOf(leaf: FromLeaf, relation: RelationFacts, named: ReadonlySet<string>): string {
  const isRenamed = relation.columns.some(({ name }, position) => leaf.columns?.[position] !== name);
  return relation.columns
    .filter(({ name }) => isRenamed || named.has(name))
    .map(({ name }) => (named.has(name) ? quoteIdentifier(name) : `NULL AS ${quoteIdentifier(name)}`))
    .join(", ");
}

/**
 * The key column in terms of the table's own columns, if nothing else is needed for it. Only a column: what is computed may
 * fail for rows that the query leaves out, as 1 / n does where n is 0.
 */
function ownKey(place: TablePlace, position: number, column: FactColumn | undefined): string | undefined {
  const { leaf } = place;
  const ways = waysFrom(place, [position]);
  if ("why" in ways) return undefined;
  const [way, another] = ways;
  if (way === undefined || another !== undefined || way.leaves.length > 1 || column === undefined) return undefined;
  const [wanted] = way.wanted;
  const sole = wanted === undefined ? undefined : soleColumn(wanted);
  if (sole === undefined) return undefined;
  const at = leaf.columns?.indexOf(sole.column) ?? -1;
  const text = quoteIdentifier(relationOf(leaf)?.columns[at]?.name ?? sole.column);
  return typeOfColumn(sole)?.type === column.type ? text : `CAST(${text} AS ${column.type})`;
}
