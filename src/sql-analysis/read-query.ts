import { type Fields, isObject, namesIn, textOf } from "../sql-guard/tree.ts";
import type { BlockDraft, ReadingHost, Surrounding } from "./block-draft.ts";
import { type ExpressionPlace, joined, listOf, readExpression } from "./expressions.ts";
import {
  columnsIn,
  type Expression,
  type FromLeaf,
  type JoinNode,
  type OutputExpression,
  outputNames,
  type QueryBlock,
  type SelectBlock,
} from "./model.ts";
import { columnOf, innerScope, isVisible, leafOf, selectOf, withCtes } from "./names.ts";
import { conditionsOfOptionalSides, withoutNeedlessOuterJoins } from "./outer-joins.ts";
import type { ParsedText } from "./parsed-text.ts";
import type { QueryFacts, RelationFacts } from "./query-facts.ts";
import { readCondition } from "./read-condition.ts";
import { commaJoin, readFromItem } from "./read-from.ts";
import { DISTINCT_ON, GROUPING_SETS, LIMITED, RECURSIVE } from "./sentences.ts";

/** Makes blocks of the parse trees of a query and its views. */

/** In a chain of CTEs that each name the previous one twice, the first is met 2ⁿ times. */
const MOST_BLOCKS = 400;

export class TooManyPlaces extends Error {}

export class QueryReader implements ReadingHost {
  readonly calls: { readonly name: string; readonly args: number }[] = [];
  readonly aggregates: { readonly name: string; readonly call: Fields; readonly args: readonly Expression[] }[] = [];
  /** Leaves whose row is used as a whole. */
  readonly rowsUsed = new Set<FromLeaf>();
  /** Names that could not be told from the text. */
  readonly unresolved = new Set<string>();
  readonly sampled = new Set<RelationFacts>();
  readonly unknownRelations = new Set<string>();
  /** The SELECTs of all texts that were turned into blocks. */
  readonly visited = new Set<Fields>();
  readonly #reads = new Map<RelationFacts, Set<string>>();
  readonly facts: QueryFacts;
  readonly views: ReadonlyMap<RelationFacts, ParsedText>;
  readonly #underWay = new Set<Fields>();
  readonly #recursive = new Set<Fields>();
  #blocks = 0;
  #aggregatesBegun = 0;
  /** A window counts rows, so that it depends on the order of those that ORDER BY does not tell apart. */
  hasFrameOfRows = false;
  /** What columns are of, one after the other. */
  readonly #used: FromLeaf[] = [];

  constructor(facts: QueryFacts, views: ReadonlyMap<RelationFacts, ParsedText>) {
    this.facts = facts;
    this.views = views;
  }

  /** The columns of a table that the query reads, in the table's order. */
  columnsRead(relation: RelationFacts): readonly string[] {
    const read = this.#reads.get(relation);
    const stored = relation.columns.filter(({ isVirtual }) => !isVirtual);
    // What a column is computed from is not said here.
    const isAny = relation.columns.some(({ name, isVirtual }) => isVirtual && read?.has(name) === true);
    return stored.map(({ name }) => name).filter((name) => isAny || read?.has(name) === true);
  }

  /** The same with columns that are computed when they are read, and of views. */
  columnsNamed(relation: RelationFacts): ReadonlySet<string> {
    return this.#reads.get(relation) ?? new Set();
  }

  read(text: ParsedText): QueryBlock {
    return this.block(text.select, { scope: undefined, ctes: undefined, source: text.source });
  }

  block(select: Fields, around: Surrounding): QueryBlock {
    this.#blocks += 1;
    if (this.#blocks > MOST_BLOCKS) throw new TooManyPlaces();
    this.visited.add(select);
    this.#underWay.add(select);
    const ctes = withCtes(select["withClause"], around.ctes, around);
    const block = isObject(select["larg"])
      ? this.#setBlock(select, { ...around, ctes })
      : this.#selectBlock(select, { ...around, ctes });
    this.#underWay.delete(select);
    return block;
  }

  isRecursion(select: Fields): boolean {
    const isOwn = this.#underWay.has(select);
    if (isOwn) this.#recursive.add(select);
    return isOwn;
  }

  #setBlock(select: Fields, around: Surrounding): QueryBlock {
    const [left, right] = [select["larg"], select["rarg"]].map((side) =>
      this.block(isObject(side) ? side : {}, around),
    ) as [QueryBlock, QueryBlock];
    const operations = { SETOP_UNION: "union", SETOP_EXCEPT: "except", SETOP_INTERSECT: "intersect" } as const;
    const isRecursive = this.#recursive.has(select);
    return {
      kind: "set",
      operation: operations[select["op"] as keyof typeof operations],
      keepsAll: select["op"] === "SETOP_UNION" && select["all"] === true,
      branches: [left, right],
      names: outputNames(left),
      notLocal: isRecursive ? RECURSIVE : isLimited(select) ? LIMITED : undefined,
      isRecursive,
    };
  }

  #selectBlock(select: Fields, around: Surrounding): SelectBlock {
    const draft: BlockDraft = {
      ...around,
      scope: innerScope(around.scope),
      sublinks: [],
      partitions: [],
      windows: new Map(listOf(select["windowClause"]).map((node) => namedWindow(node))),
      output: "",
      computedBy: undefined,
      isMisplaced: false,
      aggregateDepth: 0,
      isOfGroup: false,
      bare: [],
    };
    const from = listOf(select["fromClause"])
      .map((node) => readFromItem(node, draft, this))
      .reduce<JoinNode | undefined>(commaJoin, undefined);
    const where = readCondition(select["whereClause"], draft, this);
    draft.bare = [];
    draft.isOfGroup = true;
    const aggregatesBefore = this.#aggregatesBegun;
    const outputs = this.#outputs(select, draft);
    draft.output = "";
    for (const part of ["sortClause", "limitCount", "limitOffset"]) this.expression(select[part], draft);
    readCondition(select["havingClause"], draft, this);
    for (const window of draft.windows.values()) this.#windowParts(window, draft);
    const distinct = listOf(select["distinctClause"]).filter((node) => isObject(node) && Object.keys(node).length > 0);
    if (distinct.length > 0) {
      const by = distinct.map((node) => this.expression(node, draft));
      draft.partitions.push({ by, of: DISTINCT_ON, isDistinct: true });
    }
    const bare = [...draft.bare];
    const hasAggregates = this.#aggregatesBegun > aggregatesBefore;
    const groups = listOf(select["groupClause"]);
    const by = groups.map((node) => this.expression(node, draft));
    const hasSets = groups.some((node) => isObject(node) && "GroupingSet" in node);
    // An aggregate in a subquery may be one of this SELECT, which then cannot use a column without any.
    const isOfRows = bare.some(({ leaf }) => draft.scope.leaves.includes(leaf));
    const needed = new Set(where.notNull.map(({ leaf }) => leaf));
    const joins = from === undefined ? undefined : withoutNeedlessOuterJoins(from, needed);
    const optional = conditionsOfOptionalSides(joins);
    return {
      kind: "select",
      outputs,
      from: joins,
      where,
      sublinks: draft.sublinks.map((sublink) =>
        sublink.on !== undefined && optional.has(sublink.on) ? { ...sublink, isMisplaced: true } : sublink,
      ),
      partitions: draft.partitions,
      isDistinct: listOf(select["distinctClause"]).length > 0 && distinct.length === 0,
      grouping: groups.length > 0 ? { by, bare, hasSets } : undefined,
      isOneGroup: groups.length === 0 && (select["havingClause"] !== undefined || (hasAggregates && !isOfRows)),
      notLocal: isLimited(select) ? LIMITED : hasSets ? GROUPING_SETS : undefined,
    };
  }

  #outputs(select: Fields, draft: BlockDraft): readonly OutputExpression[] {
    const [firstRow] = listOf(select["valuesLists"]);
    if (firstRow !== undefined) {
      this.expression(select["valuesLists"], draft);
      const { List } = firstRow as { List?: Fields };
      return listOf(List?.["items"]).map((_, index) => ({
        name: `column${index + 1}`,
        value: { parts: ["?"], isPlain: false },
        computedBy: undefined,
      }));
    }
    return listOf(select["targetList"]).map((node) => {
      const { name, val } = (node as { ResTarget?: Fields }).ResTarget ?? {};
      draft.output = textOf(name) || lastNameOf(val);
      draft.computedBy = undefined;
      const value = this.expression(val, draft);
      return { name: draft.output, value, computedBy: draft.computedBy };
    });
  }

  expression(node: unknown, draft: BlockDraft): Expression {
    return Array.isArray(node)
      ? joined(node.map((item) => this.expression(item, draft)))
      : readExpression(node, this.place(draft));
  }

  place(draft: BlockDraft): ExpressionPlace {
    return {
      facts: this.facts,
      column: (names) => {
        const column = columnOf(names, draft.scope);
        if (column === undefined) this.unresolved.add(names.join("."));
        else {
          this.noteColumns(column);
          this.#used.push(...columnsIn(column).map(({ leaf }) => leaf));
          if (draft.aggregateDepth === 0) draft.bare.push(...columnsIn(column));
        }
        return column;
      },
      wholeRow: (names) => this.#noteRow(leafOf(names[0] ?? "", draft.scope), names),
      subquery: (sublink) => this.sublink(sublink, [], draft),
      window: (over) => {
        draft.computedBy ??= "a window";
        this.#window(over, draft);
      },
      beginAggregate: (name) => {
        draft.computedBy ??= `${name}()`;
        draft.aggregateDepth += 1;
        this.#aggregatesBegun += 1;
      },
      endAggregate: (name, call, args) => {
        draft.aggregateDepth -= 1;
        this.aggregates.push({ name, call, args });
      },
      call: (name, args) => this.calls.push({ name, args }),
    };
  }

  noteColumns(expression: Expression): void {
    for (const part of expression.parts) {
      if (typeof part === "string" || part.leaf.kind === "function") continue;
      const { leaf } = part;
      const relation = leaf.kind === "table" ? leaf.relation : leaf.view;
      const column = relation?.columns[leaf.columns.indexOf(part.column)]?.name;
      if (relation !== undefined && column !== undefined) this.#readsOf(relation).add(column);
    }
  }

  #noteRow(leaf: FromLeaf | undefined, names: readonly string[]): void {
    if (leaf === undefined) {
      this.unresolved.add(names.join("."));
      return;
    }
    this.rowsUsed.add(leaf);
    this.#used.push(leaf);
    if (leaf.kind === "table") {
      for (const { name } of leaf.relation.columns) this.#readsOf(leaf.relation).add(name);
    }
  }

  #readsOf(relation: RelationFacts): Set<string> {
    const known = this.#reads.get(relation) ?? new Set();
    this.#reads.set(relation, known);
    return known;
  }

  sublink(fields: Fields, tests: readonly Expression[], draft: BlockDraft): void {
    const { subLinkType, testexpr, subselect } = fields;
    if (tests.length === 0) this.expression(testexpr, draft);
    const usedBefore = this.#used.length;
    const block = this.block(selectOf(subselect), draft);
    const dependsOnRow = this.#used.slice(usedBefore).some((leaf) => isVisible(leaf, draft.scope));
    const isEvery = ["ANY_SUBLINK", "ALL_SUBLINK"].includes(textOf(subLinkType)) && tests.length === 0;
    const every = isEvery ? (draft.output === "" ? "not in" : "value") : undefined;
    draft.computedBy ??= "a subquery";
    const isOfGroup = draft.isOfGroup && draft.aggregateDepth === 0;
    const { isMisplaced } = draft;
    draft.sublinks.push({ block, tests, every, dependsOnRow, isMisplaced, isOfGroup, on: undefined });
  }

  #window(over: Fields, draft: BlockDraft): void {
    this.#windowParts(over, draft);
    const by = partitionOf(over, draft.windows).map((node) => this.expression(node, draft));
    const of = draft.output === "" ? "a window" : `the window of ${draft.output}`;
    draft.partitions.push({ by, of, isDistinct: false });
  }

  #windowParts(window: Fields, draft: BlockDraft): void {
    this.hasFrameOfRows ||= isFrameOfRows(Number(window["frameOptions"] ?? 0));
    for (const part of ["partitionClause", "orderClause", "startOffset", "endOffset"]) {
      this.expression(window[part], draft);
    }
  }
}

/** Bits of PostgreSQL's parser: FRAMEOPTION_ROWS; and from the first row of the partition to the last, which are always the same. */
const [OF_ROWS, WHOLE_PARTITION] = [0x4, 0x120];

function isFrameOfRows(options: number): boolean {
  return (options & OF_ROWS) !== 0 && (options & WHOLE_PARTITION) !== WHOLE_PARTITION;
}

function namedWindow(node: unknown): [string, Fields] {
  const window = (node as { WindowDef?: Fields }).WindowDef ?? {};
  return [textOf(window["name"]), window];
}

/** A window takes the partitions of the one that it names. */
function partitionOf(over: Fields, windows: ReadonlyMap<string, Fields>): readonly unknown[] {
  const own = listOf(over["partitionClause"]);
  // One that is named has its own name, too.
  const base = windows.get(textOf(over["refname"]) || textOf(over["name"]));
  return own.length > 0 || base === undefined || base === over ? own : partitionOf(base, windows);
}

function isLimited({ limitCount, limitOffset }: Fields): boolean {
  const isAll = isObject(limitCount) && isObject(limitCount["A_Const"]) && limitCount["A_Const"]["isnull"] === true;
  return (limitCount !== undefined && !isAll) || limitOffset !== undefined;
}

function lastNameOf(value: unknown): string {
  const { ColumnRef, FuncCall, TypeCast, CoalesceExpr } = isObject(value) ? value : {};
  if (isObject(ColumnRef)) return namesIn(ColumnRef["fields"]).at(-1) ?? "";
  if (isObject(FuncCall)) return namesIn(FuncCall["funcname"]).at(-1) ?? "";
  if (isObject(TypeCast)) return lastNameOf(TypeCast["arg"]);
  return CoalesceExpr === undefined ? "" : "coalesce";
}
