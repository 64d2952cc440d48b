import { type Fields, isObject, namesIn } from "../sql-guard/tree.ts";
import type { BlockDraft, ReadingHost } from "./block-draft.ts";
import { listOf } from "./expressions.ts";
import {
  type Choice,
  type ColumnUse,
  type Condition,
  type Equality,
  type Expression,
  NO_CONDITION,
  soleColumn,
} from "./model.ts";
import { typeOfColumn } from "./types.ts";

/** Reads a WHERE or an ON: the equalities in it, and what it does not let be null. */

export function readCondition(node: unknown, draft: BlockDraft, host: ReadingHost): Condition {
  if (node === undefined) return NO_CONDITION;
  const equalities: Equality[] = [];
  const notNull: ColumnUse[] = [];
  const choices: Choice[] = [];
  for (const part of conjuncts(node)) {
    const { equality, choice, strict } = conjunct(part, draft, host);
    if (equality !== undefined) equalities.push(equality);
    if (choice !== undefined) choices.push(choice);
    notNull.push(...strict.flatMap((side) => soleColumn(side) ?? []));
  }
  return { equalities, notNull, choices };
}

/** What a part of an AND says. */
interface Conjunct {
  readonly equality?: Equality;
  readonly choice?: Choice;
  readonly strict: readonly Expression[];
}

function conjunct(node: unknown, draft: BlockDraft, host: ReadingHost): Conjunct {
  const { A_Expr: comparison, NullTest: nullTest, SubLink: sublink } = isObject(node) ? node : {};
  if (isObject(comparison)) return readComparison(comparison, draft, host);
  if (isObject(nullTest) && nullTest["nulltesttype"] === "IS_NOT_NULL") {
    return { strict: [host.expression(nullTest["arg"], draft)] };
  }
  if (isObject(sublink) && isIn(sublink)) return { strict: readIn(sublink, draft, host) };
  const same = withoutDistinct(node);
  if (same !== undefined) {
    const [left, right] = [host.expression(same["lexpr"], draft), host.expression(same["rexpr"], draft)];
    return { equality: { left, right, nullsMatch: true }, strict: [] };
  }
  const choice = readOr(node, draft, host);
  return { strict: [], ...(choice !== undefined && { choice }) };
}

/** Of an OR, if every part of it has an equality. */
function readOr(node: unknown, draft: BlockDraft, host: ReadingHost): Choice | undefined {
  const junction = isObject(node) ? node["BoolExpr"] : undefined;
  if (!isObject(junction) || junction["boolop"] !== "OR_EXPR") {
    truth(node, draft, host);
    return undefined;
  }
  const parts = listOf(junction["args"]).map((part) => equalitiesOf(part, draft, host));
  return parts.every(({ length }) => length > 0) ? parts : undefined;
}

function equalitiesOf(node: unknown, draft: BlockDraft, host: ReadingHost): readonly Equality[] {
  return conjuncts(node).flatMap((part) => {
    const comparison = isObject(part) ? part["A_Expr"] : undefined;
    if (isObject(comparison)) return readComparison(comparison, draft, host).equality ?? [];
    truth(part, draft, host);
    return [];
  });
}

function readComparison(fields: Fields, draft: BlockDraft, host: ReadingHost): Conjunct {
  const [operator, qualified] = namesIn(fields["name"]);
  const [left, right] = [host.expression(fields["lexpr"], draft), host.expression(fields["rexpr"], draft)];
  const isOwn = qualified === undefined && ["=", "<>", "<", ">", "<=", ">="].includes(operator ?? "");
  if (!isOwn || fields["lexpr"] === undefined) return { strict: [] };
  if (fields["kind"] === "AEXPR_OP_ANY") {
    const choice =
      operator === "=" ? elementsOf(right)?.map((item) => [{ left, right: item, nullsMatch: false }]) : undefined;
    return { strict: [left], ...(choice !== undefined && { choice }) };
  }
  if (fields["kind"] !== "AEXPR_OP") return { strict: [] };
  const strict = [left, right];
  return operator === "=" ? { equality: { left, right, nullsMatch: false }, strict } : { strict };
}

/** Of an array of arrays these are not what ANY compares with. */
function elementsOf({ items }: Expression): readonly Expression[] | undefined {
  const isArray = (item: Expression): boolean => {
    const column = soleColumn(item);
    return item.items !== undefined || (column !== undefined && typeOfColumn(column)?.type.endsWith("]") === true);
  };
  return items?.some(isArray) === true ? undefined : items;
}

/** A part of a condition, where unknown is as good as false. */
function truth(node: unknown, draft: BlockDraft, host: ReadingHost): void {
  const { BoolExpr: junction, SubLink: sublink } = isObject(node) ? node : {};
  if (isObject(junction) && junction["boolop"] !== "NOT_EXPR") {
    for (const part of listOf(junction["args"])) truth(part, draft, host);
  } else if (isObject(sublink) && isIn(sublink)) readIn(sublink, draft, host);
  else host.expression(node, draft);
}

function readIn(sublink: Fields, draft: BlockDraft, host: ReadingHost): readonly Expression[] {
  const { testexpr } = sublink;
  const row = isObject(testexpr) && isObject(testexpr["RowExpr"]) ? listOf(testexpr["RowExpr"]["args"]) : [testexpr];
  const tests = row.map((node) => host.expression(node, draft));
  host.sublink(sublink, tests, draft);
  return tests;
}

function isIn({ subLinkType, operName }: Fields): boolean {
  return subLinkType === "ANY_SUBLINK" && operName === undefined;
}

function conjuncts(node: unknown): readonly unknown[] {
  const junction = isObject(node) ? node["BoolExpr"] : undefined;
  if (!isObject(junction) || junction["boolop"] !== "AND_EXPR") return [node];
  return listOf(junction["args"]).flatMap(conjuncts);
}

/** The comparison in `NOT (a IS DISTINCT FROM b)`. */
function withoutDistinct(node: unknown): Fields | undefined {
  const junction = isObject(node) ? node["BoolExpr"] : undefined;
  if (!isObject(junction) || junction["boolop"] !== "NOT_EXPR") return undefined;
  const [only] = listOf(junction["args"]);
  const comparison = isObject(only) ? only["A_Expr"] : undefined;
  return isObject(comparison) && comparison["kind"] === "AEXPR_DISTINCT" ? comparison : undefined;
}
