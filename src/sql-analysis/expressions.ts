import { quoteIdentifier, quoteLiteral } from "../postgres/identifiers.ts";
import { type Fields, isObject, namesIn, textOf } from "../sql-guard/tree.ts";
import type { ColumnUse, Expression } from "./model.ts";
import type { QueryFacts } from "./query-facts.ts";
import { spend } from "./work.ts";

/** Reads the expressions of a parse tree: which columns they use, and how they are written again. */

/** What stands around an expression. */
export interface ExpressionPlace {
  readonly facts: Pick<QueryFacts, "aggregates" | "setReturning" | "typesOfOwnEquality">;
  /** The column of a name; tells the reader's owner which columns are read. */
  column(names: readonly string[]): Expression | undefined;
  /** `f.*` */
  wholeRow(names: readonly string[]): void;
  subquery(sublink: Fields): void;
  window(over: Fields): void;
  /** An aggregate's arguments follow, until it is over. */
  beginAggregate(name: string): void;
  endAggregate(name: string, call: Fields, args: readonly Expression[]): void;
  call(name: string, args: number): void;
}

const NOT_PLAIN: Expression = { parts: ["?"], isPlain: false };

/** In steps of `WorkBudget`. A common table expression is read again at each of its places. */
const COST_OF_READING = 5;

export function readExpression(node: unknown, place: ExpressionPlace): Expression {
  spend(COST_OF_READING);
  const [[kind, fields] = ["", undefined]] = isObject(node) ? Object.entries(node) : [];
  if (!isObject(fields) || Object.keys(node as Fields).length > 1) return readInside(node, place);
  const read = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  return read === undefined ? readInside(fields, place) : read(fields, place);
}

/** Of something that is not written again: only what it uses is noted. */
function readInside(value: unknown, place: ExpressionPlace): Expression {
  if (Array.isArray(value)) {
    for (const item of value) readExpression(item, place);
  } else if (isObject(value)) {
    for (const [kind, inner] of Object.entries(value)) {
      if (kind === "over" && isObject(inner)) place.window(inner);
      else if (Object.hasOwn(KINDS, kind) && isObject(inner)) readExpression({ [kind]: inner }, place);
      else readInside(inner, place);
    }
  }
  return NOT_PLAIN;
}

type Reader = (fields: Fields, place: ExpressionPlace) => Expression;

const KINDS: Readonly<Record<string, Reader>> = {
  ColumnRef: readColumn,
  A_Const: ({ isnull, ival, fval, sval, boolval }) => {
    if (isnull === true) return text("NULL");
    if (isObject(ival)) return text(String(ival["ival"] ?? 0));
    if (isObject(fval)) return text(textOf(fval["fval"]));
    if (isObject(sval)) return text(quoteLiteral(textOf(sval["sval"])).trim());
    return isObject(boolval) ? text(boolval["boolval"] === true ? "true" : "false") : NOT_PLAIN;
  },
  TypeCast: ({ arg, typeName }, place) => {
    const type = typeText(typeName);
    const value = readExpression(arg, place);
    // What is compared in a way of its own must not get into a comparison of ours.
    const isOfOwnEquality = place.facts.typesOfOwnEquality.includes(namesIn((typeName as Fields)["names"]).join("."));
    if (type === undefined || isOfOwnEquality) return NOT_PLAIN;
    const cast = joined(["CAST(", value, ` AS ${type})`]);
    return isBareType(typeName) ? { ...cast, castTo: namesIn((typeName as Fields)["names"]).at(-1) ?? "" } : cast;
  },
  A_Expr: readOperator,
  FuncCall: readCall,
  CoalesceExpr: ({ args }, place) => {
    const values = listOf(args).map((arg) => readExpression(arg, place));
    const [first, second, third] = values;
    const all = joined(["COALESCE(", ...separated(values), ")"]);
    return first !== undefined && second !== undefined && third === undefined
      ? { ...all, either: [first, second] }
      : all;
  },
  MinMaxExpr: ({ op, args }, place) =>
    joined([op === "IS_LEAST" ? "LEAST(" : "GREATEST(", ...separated(readAll(args, place)), ")"]),
  A_ArrayExpr: ({ elements }, place) => {
    const items = readAll(elements, place);
    return { ...joined(["ARRAY[", ...separated(items), "]"]), items };
  },
  CaseExpr: readCase,
  BoolExpr: ({ boolop, args }, place) => {
    const values = readAll(args, place);
    if (boolop === "NOT_EXPR") return joined(["(NOT ", ...values, ")"]);
    return joined(["(", ...separated(values, boolop === "AND_EXPR" ? " AND " : " OR "), ")"]);
  },
  NullTest: ({ arg, nulltesttype }, place) =>
    joined(["(", readExpression(arg, place), nulltesttype === "IS_NULL" ? " IS NULL)" : " IS NOT NULL)"]),
  JsonObjectAgg: (fields, place) => readJsonAggregate("JSON_OBJECTAGG", fields, place),
  JsonArrayAgg: (fields, place) => readJsonAggregate("JSON_ARRAYAGG", fields, place),
  SubLink: (fields, place) => {
    place.subquery(fields);
    return NOT_PLAIN;
  },
  SQLValueFunction: ({ op }, place) => {
    place.call(textOf(op).replace(/^SVFOP_|_N$/g, ""), 0);
    return NOT_PLAIN;
  },
};

function readColumn({ fields }: Fields, place: ExpressionPlace): Expression {
  const names = namesIn(fields);
  if (listOf(fields).some((field) => isObject(field) && "A_Star" in field)) {
    place.wholeRow(names.filter((name) => name !== ""));
    return NOT_PLAIN;
  }
  return place.column(names) ?? NOT_PLAIN;
}

function readOperator({ kind, name, lexpr, rexpr }: Fields, place: ExpressionPlace): Expression {
  const right = readExpression(rexpr, place);
  const operator = operatorText(namesIn(name));
  if (lexpr === undefined) return kind === "AEXPR_OP" ? joined([`(${operator} `, right, ")"]) : NOT_PLAIN;
  const left = readExpression(lexpr, place);
  switch (kind) {
    case "AEXPR_OP":
      return joined(["(", left, ` ${operator} `, right, ")"]);
    case "AEXPR_OP_ANY":
      return joined(["(", left, ` ${operator} ANY (`, right, "))"]);
    case "AEXPR_DISTINCT":
      return joined(["(", left, " IS DISTINCT FROM ", right, ")"]);
    case "AEXPR_NOT_DISTINCT":
      return joined(["(", left, " IS NOT DISTINCT FROM ", right, ")"]);
    case "AEXPR_NULLIF":
      return joined(["NULLIF(", left, ", ", right, ")"]);
    default:
      return NOT_PLAIN;
  }
}

function operatorText(names: readonly string[]): string {
  const [schema, name] = names;
  return name === undefined ? (schema ?? "") : `OPERATOR(${quoteIdentifier(schema ?? "")}.${name})`;
}

const ONLY_AGGREGATES_HAVE = ["agg_within_group", "agg_star", "agg_distinct", "agg_filter", "agg_order"];

function readCall(fields: Fields, place: ExpressionPlace): Expression {
  const names = namesIn(fields["funcname"]);
  const name = names.at(-1) ?? "";
  const args = listOf(fields["args"]);
  const { over } = fields;
  const isAggregate =
    over === undefined &&
    (ONLY_AGGREGATES_HAVE.some((field) => field in fields) || place.facts.aggregates.includes(name));
  place.call(name, args.length);
  if (isAggregate) place.beginAggregate(name);
  const values = readAll(args, place);
  for (const part of ["agg_filter", "agg_order"]) readInside(fields[part], place);
  if (isAggregate) place.endAggregate(name, fields, values);
  if (isObject(over)) place.window(over);
  if (isAggregate || over !== undefined) return NOT_PLAIN;
  if (fields["func_variadic"] === true || place.facts.setReturning.includes(name)) return NOT_PLAIN;
  return joined([`${names.map(quoteIdentifier).join(".")}(`, ...separated(values), ")"]);
}

/** JSON_ARRAYAGG and JSON_OBJECTAGG are nodes of their own, and may have a window. */
function readJsonAggregate(name: string, fields: Fields, place: ExpressionPlace): Expression {
  const call = isObject(fields["constructor"]) ? fields["constructor"] : {};
  if (isObject(call["over"])) return readInside(fields, place);
  place.beginAggregate(name);
  readInside(fields, place);
  place.endAggregate(name, call, []);
  return NOT_PLAIN;
}

function readCase({ arg, args, defresult }: Fields, place: ExpressionPlace): Expression {
  const parts: (string | Expression)[] = ["CASE"];
  if (arg !== undefined) parts.push(" ", readExpression(arg, place));
  for (const when of listOf(args)) {
    const { CaseWhen } = when as { CaseWhen?: Fields };
    parts.push(" WHEN ", readExpression(CaseWhen?.["expr"], place));
    parts.push(" THEN ", readExpression(CaseWhen?.["result"], place));
  }
  if (defresult !== undefined) parts.push(" ELSE ", readExpression(defresult, place));
  return joined([...parts, " END"]);
}

function readAll(args: unknown, place: ExpressionPlace): Expression[] {
  return listOf(args).map((arg) => readExpression(arg, place));
}

function text(sql: string): Expression {
  return { parts: [sql], isPlain: true };
}

export function joined(pieces: readonly (string | Expression)[]): Expression {
  const parts: (string | ColumnUse)[] = [];
  for (const piece of pieces.flatMap((one) => (typeof one === "string" ? [one] : one.parts))) {
    const last = parts.at(-1);
    if (typeof piece === "string" && typeof last === "string") parts[parts.length - 1] = last + piece;
    else parts.push(piece);
  }
  const isPlain = pieces.every((piece) => typeof piece === "string" || (piece.isPlain && piece.isOnlyEqual !== true));
  return { parts, isPlain };
}

function separated(values: readonly Expression[], separator = ", "): (string | Expression)[] {
  return values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
}

/** `pg_catalog.interval` keeps its precision in a way of its own. */
function typeText(type: unknown): string | undefined {
  if (!isObject(type)) return undefined;
  const names = namesIn(type["names"]);
  const modifiers = listOf(type["typmods"]).map((node) => {
    const { A_Const } = node as { A_Const?: { ival?: Fields } };
    return A_Const?.ival === undefined ? undefined : String(A_Const.ival["ival"] ?? 0);
  });
  if (modifiers.includes(undefined) || type["setof"] === true || type["pct_type"] === true) return undefined;
  if (modifiers.length > 0 && names.at(-1) === "interval") return undefined;
  const name = names.map(quoteIdentifier).join(".");
  const bounds = listOf(type["arrayBounds"]).length;
  return `${name}${modifiers.length > 0 ? `(${modifiers.join(",")})` : ""}${"[]".repeat(bounds)}`;
}

/** Without modifiers and dimensions, and of pg_catalog: the only schema that is searched. */
function isBareType(type: unknown): boolean {
  if (!isObject(type) || listOf(type["typmods"]).length > 0 || listOf(type["arrayBounds"]).length > 0) return false;
  const names = namesIn(type["names"]);
  return names.length === 1 || names[0] === "pg_catalog";
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
