import { type Fields, isObject, namesIn, offsetOf, textOf } from "../sql-guard/tree.ts";
import type { BlockDraft, ReadingHost } from "./block-draft.ts";
import { joined, listOf, readExpression } from "./expressions.ts";
import {
  type Condition,
  type Expression,
  type FromLeaf,
  type JoinNode,
  leavesOf,
  NO_CONDITION,
  outputNames,
  type QueryLeaf,
  soleColumn,
} from "./model.ts";
import { type CteEntry, columnOf, cteOf, renamed, selectOf } from "./names.ts";
import { readCondition } from "./read-condition.ts";
import { asMergedWith } from "./types.ts";

/** Reads what stands in FROM. */

export function readFromItem(node: unknown, draft: BlockDraft, host: ReadingHost): JoinNode {
  const [[kind, fields] = ["", undefined]] = isObject(node) ? Object.entries(node) : [];
  if (!isObject(fields)) return opaque({}, draft, host);
  if (kind === "JoinExpr") return join(fields, draft, host);
  if (kind === "RangeVar") return named(fields, draft, false, host);
  if (kind === "RangeTableSample") {
    const { relation } = fields as { relation?: { RangeVar?: Fields } };
    return named(relation?.RangeVar ?? {}, draft, true, host);
  }
  if (kind === "RangeSubselect") return subselect(fields, draft, host);
  return kind === "RangeFunction" ? readFunction(fields, draft, host) : opaque(fields, draft, host);
}

function join(fields: Fields, draft: BlockDraft, host: ReadingHost): JoinNode {
  const { jointype, larg, rarg, usingClause, quals } = fields;
  const before = draft.scope.merged.size === 0 ? new Map() : new Map(draft.scope.merged);
  const left = readFromItem(larg, draft, host);
  const leftMerged = new Map(draft.scope.merged);
  for (const name of leftMerged.keys()) if (!before.has(name)) draft.scope.merged.delete(name);
  const right = readFromItem(rarg, draft, host);
  const rightMerged = draft.scope.merged;
  const using = namesIn(usingClause).map((name) => ({
    name,
    left: mergedSide(name, left, leftMerged, host),
    right: mergedSide(name, right, rightMerged, host),
  }));
  for (const [name, value] of leftMerged) if (!rightMerged.has(name)) rightMerged.set(name, value);
  const type = jointype === "JOIN_INNER" ? "inner" : jointype === "JOIN_FULL" ? "full" : "left";
  for (const { name, left: one, right: other } of using) {
    const { losesByConversion: mayBeConverted } = host.facts;
    const both: Expression = { ...joined(["COALESCE(", one, ", ", other, ")"]), either: [one, other], mayBeConverted };
    const [side, merged] = jointype === "JOIN_RIGHT" ? [other, one] : [one, other];
    draft.scope.merged.set(name, jointype === "JOIN_FULL" ? both : asMergedWith(merged, side, mayBeConverted));
  }
  const wasMisplaced = draft.isMisplaced;
  draft.isMisplaced = wasMisplaced || type !== "inner";
  const known = draft.sublinks.length;
  const on = readCondition(quals, draft, host);
  draft.isMisplaced = wasMisplaced;
  const condition: Condition = {
    ...on,
    equalities: [...on.equalities, ...using.map((one) => ({ left: one.left, right: one.right, nullsMatch: false }))],
    notNull: [
      ...on.notNull,
      ...using.flatMap((one) => [one.left, one.right].flatMap((side) => soleColumn(side) ?? [])),
    ],
  };
  const ofOn = draft.sublinks.splice(known).map((sublink) => ({ ...sublink, on: condition }));
  draft.sublinks.push(...ofOn);
  const sides = jointype === "JOIN_RIGHT" ? { left: right, right: left } : { left, right };
  return { kind: "join", type, ...sides, condition };
}

function mergedSide(
  name: string,
  side: JoinNode,
  merged: ReadonlyMap<string, Expression>,
  host: ReadingHost,
): Expression {
  const within = leavesOf(side);
  const known = merged.get(name);
  const isOfSide = known?.parts.every((part) => typeof part === "string" || within.includes(part.leaf)) === true;
  const value = isOfSide ? known : columnOf([name], { leaves: [...within], merged: new Map(), outer: undefined });
  if (value === undefined) host.unresolved.add(name);
  else host.noteColumns(value);
  return value ?? { parts: ["?"], isPlain: false };
}

function named(fields: Fields, draft: BlockDraft, isSampled: boolean, host: ReadingHost): JoinNode {
  const [schema, name] = [textOf(fields["schemaname"]), textOf(fields["relname"])];
  const { alias, names } = aliasOf(fields, name);
  const cte = schema === "" ? cteOf(name, draft.ctes) : undefined;
  const place = {
    alias,
    offset: offsetOf(fields),
    source: draft.source,
    hasAlias: fields["alias"] !== undefined,
  };
  if (cte !== undefined) return readCte(cte, place, names, draft, host);
  const relation = host.facts.relations.find((one) => one.schema === schema && one.name === name);
  if (relation === undefined) {
    host.unknownRelations.add(`${schema}.${name}`);
    return opaque(fields, draft, host);
  }
  if (isSampled) host.sampled.add(relation);
  const own = renamed(
    relation.columns.map((column) => column.name),
    names,
  );
  const isPlainTable = !isSampled && fields["inh"] === true;
  const view = host.views.get(relation);
  if (view === undefined) return add(draft, { ...place, kind: "table", relation, columns: own, isPlainTable });
  const block = host.read(view);
  return add(draft, { ...place, kind: "query", block, columns: own, isLateral: false, view: relation });
}

function readCte(
  cte: CteEntry,
  place: LeafPlace,
  names: readonly string[],
  draft: BlockDraft,
  host: ReadingHost,
): JoinNode {
  if (host.isRecursion(cte.select)) {
    return opaque({ alias: { aliasname: place.alias } }, draft, host);
  }
  const block = host.block(cte.select, cte);
  const columns = renamed(renamed(outputNames(block), cte.columns), names);
  return add(draft, { ...place, kind: "query", block, columns, isLateral: false, view: undefined });
}

function subselect(fields: Fields, draft: BlockDraft, host: ReadingHost): JoinNode {
  const isLateral = fields["lateral"] === true;
  const select = selectOf(fields["subquery"]);
  const { alias, names } = aliasOf(fields, "");
  if (select["valuesLists"] !== undefined && names.length > 0) return readValues(select, alias, names, draft, host);
  const block = host.block(select, { ...draft, scope: isLateral ? draft.scope : draft.scope.outer });
  const columns = renamed(outputNames(block), names);
  const place = { alias, offset: undefined, source: draft.source, hasAlias: true };
  return add(draft, { ...place, kind: "query", block, columns, isLateral, view: undefined });
}

/** Rows that the query brings along: like those of a function without arguments. */
function readValues(
  select: Fields,
  alias: string,
  columns: readonly string[],
  draft: BlockDraft,
  host: ReadingHost,
): JoinNode {
  host.visited.add(select);
  const wasMisplaced = draft.isMisplaced;
  draft.isMisplaced = true;
  const rows = listOf(select["valuesLists"]).map((row) => {
    const items = listOf((row as { List?: Fields }).List?.["items"]).map((item) => host.expression(item, draft));
    return joined(["(", ...items.flatMap((item, index) => (index === 0 ? [item] : [", ", item])), ")"]);
  });
  draft.isMisplaced = wasMisplaced;
  const isWhole = select["limitCount"] === undefined && select["limitOffset"] === undefined;
  const values = joined(["(VALUES ", ...rows.flatMap((row, index) => (index === 0 ? [row] : [", ", row])), ")"]);
  const place = { alias, offset: undefined, source: draft.source };
  const call = { ...values, isPlain: values.isPlain && isWhole };
  return add(draft, { ...place, kind: "function", columns, call, withOrdinality: false });
}

function readFunction(fields: Fields, draft: BlockDraft, host: ReadingHost): JoinNode {
  const { functions, ordinality, coldeflist } = fields;
  const [first, second] = listOf(functions);
  const [call] = listOf((first as { List?: Fields } | undefined)?.List?.["items"]);
  const { FuncCall } = (call ?? {}) as { FuncCall?: Fields };
  const isPlain = second === undefined && coldeflist === undefined && FuncCall?.["func_variadic"] !== true;
  if (FuncCall === undefined || !isPlain) return opaque(fields, draft, host);
  const name = namesIn(FuncCall["funcname"]);
  const wasMisplaced = draft.isMisplaced;
  draft.isMisplaced = true;
  const args = listOf(FuncCall["args"]).map((arg) => host.expression(arg, draft));
  draft.isMisplaced = wasMisplaced;
  host.calls.push({ name: name.at(-1) ?? "", args: args.length });
  const { alias, names } = aliasOf(fields, "");
  const value = joined([
    `${name.map((part) => `"${part.replaceAll('"', '""')}"`).join(".")}(`,
    ...args.flatMap((arg, index) => (index === 0 ? [arg] : [", ", arg])),
    ")",
  ]);
  const place = { alias, offset: undefined, source: draft.source };
  return add(draft, {
    ...place,
    kind: "function",
    columns: names.length > 0 ? names : undefined,
    call: value,
    withOrdinality: ordinality === true,
  });
}

/** Something in FROM whose columns cannot lead anywhere. What it contains is still looked at. */
function opaque(fields: Fields, draft: BlockDraft, host: ReadingHost): JoinNode {
  const { alias, names } = aliasOf(fields, textOf(fields["relname"]));
  const wasMisplaced = draft.isMisplaced;
  draft.isMisplaced = true;
  readExpression({ opaque: fields }, host.place(draft));
  draft.isMisplaced = wasMisplaced;
  const columns = names.length > 0 ? names : undefined;
  const call: Expression = { parts: ["?"], isPlain: false };
  const place = { alias, offset: undefined, source: draft.source };
  return add(draft, { ...place, kind: "function", columns, call, withOrdinality: false });
}
type LeafPlace = Pick<QueryLeaf, "alias" | "offset" | "source" | "hasAlias">;

function add(draft: BlockDraft, leaf: FromLeaf): JoinNode {
  draft.scope.leaves.push(leaf);
  return { kind: "leaf", leaf };
}

export function commaJoin(left: JoinNode | undefined, right: JoinNode): JoinNode {
  return left === undefined ? right : { kind: "join", type: "inner", left, right, condition: NO_CONDITION };
}

function aliasOf(fields: Fields, otherwise: string): { alias: string; names: readonly string[] } {
  const { aliasname, colnames } = isObject(fields["alias"]) ? fields["alias"] : ({} as Fields);
  return { alias: textOf(aliasname) || otherwise, names: namesIn(colnames) };
}
