import type { GuardFinding } from "./refusal.ts";
import { expanded, renamed, type SizedColumn, SizedColumns } from "./sized-columns.ts";
import { type Fields, isObject, namesIn, offsetOf, textOf } from "./tree.ts";
import { type Cte, resolveCtes } from "./with-references.ts";

/**
 * How much planning a query may require. PostgreSQL does not check for timeouts while it plans: where joins, subqueries
 * and expressions multiply, neither a timeout nor an administrator can stop it. So they are counted in advance, as the
 * planner will see them: a common table expression that is used once, or is NOT MATERIALIZED, is inlined, and a column
 * of a subquery is the expression behind it. A query of a thousand lines has tens of each.
 */
const LIMITS = {
  ctes: [300, "common table expressions"],
  depth: [100, "levels of subqueries and common table expressions inside one another"],
  joined: [200, "tables and subqueries joined with one another"],
  items: [1000, "tables and subqueries"],
  selects: [1000, "SELECTs"],
  columns: [20_000, "columns of all its SELECTs together"],
  calls: [3000, "function calls"],
  conditions: [2000, "conditions joined by AND"],
  entries: [500, "entries of one GROUP BY, ORDER BY, PARTITION BY or DISTINCT ON"],
  groupings: [1024, "grouping sets"],
  groupedColumns: [20_000, "columns of all its grouping sets together"],
  equalities: [500, "columns set equal to one another by conditions"],
  size: [200_000, "parts of its expressions, once subqueries are put in their place"],
} as const satisfies Record<string, readonly [number, string]>;

type Counted = keyof typeof LIMITS;

export function findExcessOfStructure(statement: Fields): GuardFinding | undefined {
  try {
    const select = statement["SelectStmt"];
    if (isObject(select)) new Measurer(resolveCtes(statement)).select(select, undefined);
    return undefined;
  } catch (error) {
    if (error instanceof Excess) return error.finding;
    throw error;
  }
}

/** Ends the counting at the first limit, so that counting is bounded as well. */
class Excess extends Error {
  readonly finding: GuardFinding;

  constructor(offset: number | undefined, counted: Counted, count: number) {
    const [limit, what] = LIMITS[counted];
    super(counted);
    const shownCount = Number.isSafeInteger(count) ? String(count) : "countless";
    this.finding = { offset, what: `here the query comes to ${shownCount} ${what}, and at most ${limit} are allowed` };
  }
}

/** What a SELECT adds to the one that contains it. */
interface Measure {
  readonly depth: number;
  readonly joined: number;
  readonly items: number;
  readonly groupings: number;
  readonly groupedColumns: number;
  readonly equalities: number;
  /** The SELECTs of a UNION: a condition on all of it is put into each. */
  readonly branches: number;
  readonly columns: readonly SizedColumn[];
}

/** One SELECT while it is measured. */
interface SelectLevel {
  depth: number;
  joined: number;
  items: number;
  groupings: number;
  groupedColumns: number;
  equalities: number;
  branches: number;
  size: number;
  readonly columns: SizedColumns;
}

const SORTED_LISTS = new Set([
  "groupClause",
  "sortClause",
  "distinctClause",
  "partitionClause",
  "orderClause",
  "agg_order",
]);
const MEASURED_APART = new Set([
  "withClause",
  "fromClause",
  "targetList",
  "valuesLists",
  "larg",
  "rarg",
  "whereClause",
]);

/** How many columns two tables share is not known here. */
const EQUALITIES_OF_NATURAL_JOIN = 50;

const NOTHING_YET = {
  depth: 1,
  joined: 0,
  items: 0,
  groupings: 0,
  groupedColumns: 0,
  equalities: 0,
  branches: 1,
  size: 0,
};

/** Counted over the whole query. */
const NOTHING = { ctes: 0, selects: 0, columns: 0, calls: 0, conditions: 0 };

/** A table, or something else in FROM that is not merged with anything. */
const ONE_ITEM = { ...NOTHING_YET, depth: 0, joined: 1, items: 1 };

class Measurer {
  readonly #ctes: ReadonlyMap<Fields, Cte>;
  readonly #measures = new Map<Cte, Measure>();
  readonly #totals: Record<keyof typeof NOTHING, number> = { ...NOTHING };
  #offset: number | undefined;

  constructor(ctes: ReadonlyMap<Fields, Cte>) {
    this.#ctes = ctes;
  }

  #hold(counted: Counted, count: number): number {
    if (count > LIMITS[counted][0]) throw new Excess(this.#offset, counted, count);
    return count;
  }

  #add(counted: keyof typeof NOTHING, more: number): void {
    this.#totals[counted] = this.#hold(counted, this.#totals[counted] + more);
  }

  select(fields: Fields, outer: SizedColumns | undefined): Measure {
    this.#add("selects", 1);
    const level: SelectLevel = { ...NOTHING_YET, columns: new SizedColumns(outer) };
    this.#with(fields["withClause"], level, outer);
    const columns = isObject(fields["larg"])
      ? this.#setOperation(fields, level, outer)
      : this.#plainSelect(fields, level);
    for (const [field, value] of Object.entries(fields)) {
      if (!MEASURED_APART.has(field)) this.#grow(level, this.#size(field, value, level));
    }
    this.#grow(level, this.#conditions(fields["whereClause"], level));
    this.#add("columns", columns.length);
    return { ...level, columns };
  }

  #grow(level: SelectLevel, size: number): void {
    level.size = this.#hold("size", level.size + size);
  }

  /** Adds what is inside this SELECT: its joins become this one's. */
  #take(level: SelectLevel, inner: Omit<Measure, "columns">): void {
    level.depth = this.#hold("depth", Math.max(level.depth, inner.depth + 1));
    level.joined = this.#hold("joined", level.joined + inner.joined);
    level.branches = Math.max(level.branches, inner.branches);
    this.#addUp(level, inner);
  }

  /** What counts wherever it is. */
  #addUp(level: SelectLevel, inner: Pick<Measure, "items" | "groupings" | "groupedColumns" | "equalities">): void {
    level.items = this.#hold("items", level.items + inner.items);
    level.groupings = this.#hold("groupings", level.groupings + inner.groupings);
    level.groupedColumns = this.#hold("groupedColumns", level.groupedColumns + inner.groupedColumns);
    level.equalities = this.#hold("equalities", level.equalities + inner.equalities);
  }

  /** WHERE or ON: they are pushed into each branch of a UNION that they refer to. */
  #conditions(node: unknown, level: SelectLevel): number {
    const { branches } = level;
    level.equalities = this.#hold("equalities", level.equalities + equalitiesIn(node));
    return this.#size("quals", node, level) * branches;
  }

  #with(clause: unknown, level: SelectLevel, outer: SizedColumns | undefined): void {
    const ctes: readonly unknown[] = isObject(clause) && Array.isArray(clause["ctes"]) ? clause["ctes"] : [];
    for (const node of ctes) {
      const fields = isObject(node) ? node["CommonTableExpr"] : undefined;
      const query = isObject(fields) ? fields["ctequery"] : undefined;
      const select = isObject(query) ? query["SelectStmt"] : undefined;
      if (!isObject(fields) || !isObject(select)) continue;
      this.#offset = offsetOf(fields) ?? this.#offset;
      this.#add("ctes", 1);
      const measure = this.select(select, outer);
      const cte = this.#ctes.get(fields);
      if (cte === undefined) continue;
      this.#measures.set(cte, { ...measure, columns: renamed(measure.columns, namesIn(fields["aliascolnames"])) });
      // Planned once, by itself.
      if (!cte.isInlined) this.#addUp(level, measure);
    }
  }

  /** Branches are not joined with one another. */
  #setOperation(fields: Fields, level: SelectLevel, outer: SizedColumns | undefined): readonly SizedColumn[] {
    const [left, right] = [fields["larg"], fields["rarg"]].map((side) =>
      this.select(isObject(side) ? side : {}, outer),
    );
    if (left === undefined || right === undefined) return [];
    level.depth = Math.max(left.depth, right.depth);
    level.joined = Math.max(left.joined, right.joined);
    level.branches = left.branches + right.branches;
    this.#addUp(level, left);
    this.#addUp(level, right);
    const largest = Math.max(1, ...right.columns.map(({ size }) => size));
    return left.columns.map(({ name, size }) => ({ name, size: Math.max(size, largest) }));
  }

  #plainSelect(fields: Fields, level: SelectLevel): readonly SizedColumn[] {
    for (const item of listOf(fields["fromClause"])) this.#rangeItem(item, level);
    const rows = listOf(fields["valuesLists"]);
    if (rows.length > 0) return this.#values(rows, level);
    return listOf(fields["targetList"]).flatMap((target) => {
      const entry = isObject(target) ? target["ResTarget"] : undefined;
      if (!isObject(entry)) return [];
      this.#offset = offsetOf(entry) ?? this.#offset;
      const value = entry["val"];
      const columns = expanded(value, level.columns) ?? [
        { name: textOf(entry["name"]) || lastNameOf(value), size: this.#size("val", value, level) },
      ];
      this.#hold("columns", columns.length);
      for (const { size } of columns) this.#grow(level, size);
      return columns;
    });
  }

  #values(rows: readonly unknown[], level: SelectLevel): readonly SizedColumn[] {
    const sizes: number[] = [];
    for (const row of rows) {
      const items = isObject(row) && isObject(row["List"]) ? listOf(row["List"]["items"]) : [];
      for (const [index, item] of items.entries()) {
        const size = this.#size("item", item, level);
        this.#grow(level, size);
        sizes[index] = Math.max(sizes[index] ?? 1, size);
      }
    }
    return sizes.map((size, index) => ({ name: `column${index + 1}`, size }));
  }

  #rangeItem(node: unknown, level: SelectLevel): void {
    for (const [kind, fields] of Object.entries(isObject(node) ? node : {})) {
      if (!isObject(fields)) continue;
      this.#offset = offsetOf(fields) ?? this.#offset;
      if (kind === "RangeVar") this.#relation(fields, level);
      else if (kind === "RangeSubselect") this.#subselect(fields, level);
      else if (kind === "JoinExpr") {
        this.#rangeItem(fields["larg"], level);
        this.#rangeItem(fields["rarg"], level);
        this.#grow(level, this.#conditions(fields["quals"], level));
        const named = fields["isNatural"] === true ? EQUALITIES_OF_NATURAL_JOIN : listOf(fields["usingClause"]).length;
        level.equalities = this.#hold("equalities", level.equalities + named);
      } else {
        this.#take(level, ONE_ITEM);
        this.#grow(level, this.#size(kind, fields, level));
      }
    }
  }

  #relation(fields: Fields, level: SelectLevel): void {
    const cte = this.#ctes.get(fields);
    const measure = cte === undefined ? undefined : this.#measures.get(cte);
    // A table of the source, or a recursive expression inside itself.
    if (cte === undefined || measure === undefined || !cte.isInlined) {
      this.#take(level, ONE_ITEM);
      const columns = measure?.columns.map(({ name }) => ({ name, size: 1 }));
      level.columns.addItem(fields["alias"], textOf(fields["relname"]), columns);
      return;
    }
    this.#take(level, measure);
    level.columns.addItem(fields["alias"], textOf(fields["relname"]), measure.columns);
  }

  #subselect(fields: Fields, level: SelectLevel): void {
    const query = fields["subquery"];
    const select = isObject(query) ? query["SelectStmt"] : undefined;
    const measure = this.select(isObject(select) ? select : {}, level.columns);
    this.#take(level, { ...measure, joined: Math.max(1, measure.joined), items: Math.max(1, measure.items) });
    level.columns.addItem(fields["alias"], "", measure.columns);
  }

  #group(clause: readonly unknown[], level: SelectLevel): void {
    const { sets, columns } = groupingsOf(clause);
    // One is a plain GROUP BY.
    if (sets > 1) this.#addUp(level, { items: 0, groupings: sets, groupedColumns: columns, equalities: 0 });
  }

  /** The number of parts of an expression, including the expressions behind its columns. */
  #size(kind: string, value: unknown, level: SelectLevel): number {
    if (Array.isArray(value)) {
      if (SORTED_LISTS.has(kind)) this.#hold("entries", value.length);
      if (kind === "groupClause") this.#group(value, level);
      let size = 0;
      for (const item of value) size += this.#size("item", item, level);
      return size;
    }
    if (!isObject(value)) return 0;
    this.#offset = offsetOf(value) ?? this.#offset;
    if (kind === "ColumnRef") return level.columns.sizeOf(namesIn(value["fields"]));
    if (kind === "SelectStmt") {
      const measure = this.select(value, level.columns);
      this.#take(level, measure);
      return measure.columns.reduce((sum, { size }) => sum + size, 1);
    }
    if (kind === "FuncCall") this.#add("calls", 1);
    if (kind === "BoolExpr" && value["boolop"] === "AND_EXPR") this.#add("conditions", listOf(value["args"]).length);
    let size = 1;
    for (const [field, inner] of Object.entries(value)) size += this.#size(field, inner, level);
    return size;
  }
}

/** How many sets there are, and how many columns in all of them. */
interface Groupings {
  readonly sets: number;
  readonly columns: number;
}

/** Several side by side multiply. */
function groupingsOf(list: readonly unknown[]): Groupings {
  return list.map(groupingsOfItem).reduce(
    (all, item) => ({
      sets: all.sets * item.sets,
      columns: all.columns * item.sets + all.sets * item.columns,
    }),
    { sets: 1, columns: 0 },
  );
}

/** CUBE of n makes 2ⁿ, ROLLUP n + 1. */
function groupingsOfItem(item: unknown): Groupings {
  const { GroupingSet: set, RowExpr: row } = isObject(item) ? item : {};
  if (!isObject(set)) return { sets: 1, columns: isObject(row) ? listOf(row["args"]).length : 1 };
  const inner = listOf(set["content"]).map(groupingsOfItem);
  const columns = inner.reduce((sum, one) => sum + one.columns, 0);
  if (set["kind"] === "GROUPING_SET_CUBE") return { sets: 2 ** inner.length, columns: 2 ** inner.length * columns };
  if (set["kind"] === "GROUPING_SET_ROLLUP") return { sets: inner.length + 1, columns: (inner.length + 1) * columns };
  return { sets: inner.reduce((sum, one) => sum + one.sets, 0) || 1, columns };
}

/**
 * The planner looks at each pair of columns that a condition sets equal whenever it joins two of the tables, and checks no
 * timeout meanwhile.
 */
function equalitiesIn(condition: unknown): number {
  const { BoolExpr: junction, A_Expr: comparison } = isObject(condition) ? condition : {};
  if (isObject(junction) && junction["boolop"] === "AND_EXPR") {
    return listOf(junction["args"]).reduce<number>((sum, part) => sum + equalitiesIn(part), 0);
  }
  if (!isObject(comparison) || comparison["kind"] !== "AEXPR_OP" || namesIn(comparison["name"]).at(-1) !== "=")
    return 0;
  const sides = [comparison["lexpr"], comparison["rexpr"]];
  if (!sides.every(hasColumn)) return 0;
  const [row] = sides.flatMap((side) => (isObject(side) && isObject(side["RowExpr"]) ? [side["RowExpr"]] : []));
  return row === undefined ? 1 : listOf(row["args"]).length;
}

function hasColumn(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(hasColumn);
  return isObject(node) && ("ColumnRef" in node || Object.values(node).some(hasColumn));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The name that PostgreSQL gives a column without AS, where that is its own. */
function lastNameOf(value: unknown): string {
  const column = isObject(value) ? value["ColumnRef"] : undefined;
  return isObject(column) ? (namesIn(column["fields"]).at(-1) ?? "") : "";
}
