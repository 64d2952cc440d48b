import { type ColumnUse, columnsIn, type Expression, isSameExpression, type QueryBlock, soleColumn } from "./model.ts";
import type { PlaceLink } from "./places.ts";
import type { FactColumn } from "./query-facts.ts";

/** Types of expressions, where they can be known: those of columns of tables, and of casts. */

export type KnownType = Pick<FactColumn, "type" | "isEqualImage">;

/** As `format_type` prints them. Equal values of these are the same, and they have no collation. */
const EQUAL_IMAGE: Readonly<Record<string, string>> = {
  int2: "smallint",
  int4: "integer",
  int8: "bigint",
  bool: "boolean",
  date: "date",
  uuid: "uuid",
  timestamp: "timestamp without time zone",
  timestamptz: "timestamp with time zone",
};

function typeOfExpression(expression: Expression): KnownType | undefined {
  const column = soleColumn(expression);
  if (column !== undefined) return expression.isOnlyEqual === true ? undefined : typeOfColumn(column);
  const { castTo } = expression;
  if (castTo === undefined) return undefined;
  const type = Object.hasOwn(EQUAL_IMAGE, castTo) ? EQUAL_IMAGE[castTo] : undefined;
  if (type !== undefined) return { type, isEqualImage: true };
  // A text takes its collation from what it is made of.
  return castTo === "text" ? { type: "text", isEqualImage: columnsIn(expression).every(hasPlainCollation) } : undefined;
}

const WITHOUT_COLLATION = /^(numeric|real|double precision|jsonb?|interval)\b/;

function hasPlainCollation(use: ColumnUse): boolean {
  const known = typeOfColumn(use);
  return known !== undefined && (known.isEqualImage || WITHOUT_COLLATION.test(known.type));
}

export function typeOfColumn({ leaf, column }: ColumnUse): KnownType | undefined {
  const position = leaf.columns?.indexOf(column) ?? -1;
  if (leaf.kind === "table") return leaf.relation.columns[position];
  return leaf.kind === "query" ? typeOfOutput(leaf.block, position) : undefined;
}

/** A column, made of one, whose equality is not the one that a statement of ours would use. */
export function columnOfOwnEquality({ leaf, column }: ColumnUse): FactColumn | undefined {
  const position = leaf.columns?.indexOf(column) ?? -1;
  if (leaf.kind === "table") {
    const own = leaf.relation.columns[position];
    return own === undefined || own.ownEquality === null ? undefined : own;
  }
  const uses = leaf.kind === "query" ? valuesAt(leaf.block, position).flatMap((value) => columnsIn(value)) : [];
  return uses.map(columnOfOwnEquality).find((found) => found !== undefined);
}

function valuesAt(block: QueryBlock, position: number): readonly Expression[] {
  if (block.kind === "set") return block.branches.flatMap((branch) => valuesAt(branch, position));
  const value = block.outputs[position]?.value;
  return value === undefined ? [] : [value];
}

/** Of a set operation only if all its branches have it. */
export function typeOfOutput(block: QueryBlock, position: number): KnownType | undefined {
  if (block.kind === "select") {
    const value = block.outputs[position]?.value;
    return value === undefined ? undefined : typeOfExpression(value);
  }
  const [left, right] = block.branches.map((branch) => typeOfOutput(branch, position));
  return left?.type === right?.type && left?.isEqualImage === right?.isEqualImage ? left : undefined;
}

const CONVERTED = /character\(|^character$|bpchar|^real$|^double|float|^"char"$/;

/**
 * Some values of a set of sets are converted twice. That is the same as once, except by way of a type that loses
 * something: blanks, or digits.
 */
export function isConvertedInSteps(block: QueryBlock, position: number): boolean {
  if (block.kind === "set") return block.branches.some((branch) => isConvertedInSteps(branch, position));
  const value = block.outputs[position]?.value;
  if (value === undefined) return true;
  return value.parts.some((part) =>
    CONVERTED.test(typeof part === "string" ? part : (typeOfColumn(part)?.type ?? "float")),
  );
}

/** The same, as far as rows are concerned of which one is taken, wherever they come from: by DISTINCT or a set operation. */
export function isTheSameInAll(position: number, value: Expression, link: PlaceLink): boolean {
  return !isOneOfEqual(link) || isOfEqualImage(position, value, link);
}

function isOneOfEqual({ block, sets }: PlaceLink): boolean {
  return block.isDistinct || sets.some(({ keepsAll }) => !keepsAll);
}

function isOfEqualImage(position: number, value: Expression, { sets }: PlaceLink): boolean {
  const set = sets.at(-1);
  const type = set === undefined ? typeOfExpression(value) : typeOfOutput(set, position);
  return type?.isEqualImage === true;
}

/** Rows that are equal, and of which one is taken or which change together, have the very same value there. */
export function isTheSame(position: number, value: Expression, link: PlaceLink): boolean {
  const { block } = link;
  if (isOfEqualImage(position, value, link)) return true;
  if (isOneOfEqual(link)) return false;
  const isSame = (one: Expression): boolean => isSameExpression(one, value);
  if (columnsIn(value).length === 0) return true;
  return block.grouping?.by.some(isSame) !== true && !block.partitions.some(({ by }) => by.some(isSame));
}

function isOfOneType(one: Expression, other: Expression): boolean {
  const type = typeOfExpression(one)?.type;
  return type !== undefined && type === typeOfExpression(other)?.type;
}

/** Each is converted to any that comes after it. */
const FAMILIES = [
  ["smallint", "integer", "bigint", "numeric", "real", "double precision"],
  ["date", "timestamp without time zone", "timestamp with time zone"],
  ["character varying", "text"],
];
const OF_FLOATS: Readonly<Record<string, string>> = { real: "float4", "double precision": "float8" };

/**
 * A side of a column that USING makes of two. Of two types it is converted to one of them, or to a third. What
 * is equal stays so, except where digits are lost: 0.1 becomes 0.100000001490116 by way of a real.
 */
export function asMergedWith(other: Expression, side: Expression, mayBeConverted: boolean): Expression {
  if (isOfOneType(side, other)) return side;
  const [type, another] = [typeWithoutLength(side), typeWithoutLength(other)];
  const onlyEqual = { ...side, isOnlyEqual: true };
  const family = FAMILIES.find((types) => types.includes(type ?? "") && types.includes(another ?? ""));
  if (family !== undefined) {
    const common = family[Math.max(family.indexOf(type ?? ""), family.indexOf(another ?? ""))] ?? "";
    const castTo = OF_FLOATS[common];
    if (castTo === undefined || type === common) return onlyEqual;
    return { ...onlyEqual, parts: ["CAST(", ...side.parts, ` AS ${common})`], castTo };
  }
  const isConverted = mayBeConverted && (type === undefined || type !== another);
  return isConverted ? { ...onlyEqual, isPlain: false, mayBeConverted } : onlyEqual;
}

/** Of a column that was merged before at least what it is made of, which loses as little. */
function typeWithoutLength(expression: Expression): string | undefined {
  const column = soleColumn(expression);
  const made = Object.keys(OF_FLOATS).find((name) => OF_FLOATS[name] === expression.castTo);
  const type = column === undefined ? (typeOfExpression(expression)?.type ?? made) : typeOfColumn(column)?.type;
  return type?.replace(/\(.*\)/, "");
}

/** Of the same type, whose equal values are the same. */
export function isAlike(one: Expression, other: Expression): boolean {
  const [type, another] = [typeOfExpression(one), typeOfExpression(other)];
  return type?.isEqualImage === true && another?.isEqualImage === true && type.type === another.type;
}
