import type { GuardFinding } from "./refusal.ts";
import { expanded, renamed, type SizedColumn, SizedColumns } from "./sized-columns.ts";
import { type Fields, isObject, namesIn, offsetOf, textOf } from "./tree.ts";
import { type Cte, resolveCtes } from "./with-references.ts";

/**
 * How much planning a query may ask for. PostgreSQL plans without looking at its clock: where joins, subqueries and
 * expressions multiply, neither a timeout nor an administrator ends it. So they are counted beforehand, as the planner
 * will see them: a common table expression that is used once, or is NOT MATERIALIZED, stands where it is used, and a
 * column of a subquery is the expression behind it. A query of a thousand lines has tens of each.
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
    const shownCount = Number.isSafeInteger(count) ? String(count) : "endlessly many";
    this.finding = { offset, what: `here the query comes to ${shownCount} ${what}, and at most ${limit} are allowed` };
  }
}

/** What a SELECT adds to the one that it stands in. */
interface Measure {
  readonly depth: number;
  readonly joined: number;
  readonly items: number;
  readonly columns: readonly SizedColumn[];
}

/** One SELECT while it is measured. */
interface SelectLevel {
  depth: number;
  joined: number;
  items: number;
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
const MEASURED_APART = new Set(["withClause", "fromClause", "targetList", "valuesLists", "larg", "rarg"]);

/** Counted over the whole query. */
const NOTHING = { ctes: 0, selects: 0, columns: 0, calls: 0, conditions: 0 };

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
    const level: SelectLevel = { depth: 1, joined: 0, items: 0, size: 0, columns: new SizedColumns(outer) };
    this.#with(fields["withClause"], level, outer);
    const columns = isObject(fields["larg"])
      ? this.#setOperation(fields, level, outer)
      : this.#plainSelect(fields, level);
    for (const [field, value] of Object.entries(fields)) {
      if (!MEASURED_APART.has(field)) this.#grow(level, this.#size(field, value, level));
    }
    this.#add("columns", columns.length);
    return { depth: level.depth, joined: level.joined, items: level.items, columns };
  }

  #grow(level: SelectLevel, size: number): void {
    level.size = this.#hold("size", level.size + size);
  }

  /** Takes in what stands inside this SELECT: its joins become this one's. */
  #take(level: SelectLevel, { depth, joined, items }: Omit<Measure, "columns">): void {
    level.depth = this.#hold("depth", Math.max(level.depth, depth + 1));
    level.joined = this.#hold("joined", level.joined + joined);
    level.items = this.#hold("items", level.items + items);
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
      if (!cte.isInlined) level.items = this.#hold("items", level.items + measure.items);
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
    level.items = this.#hold("items", level.items + left.items + right.items);
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
        this.#grow(level, this.#size("quals", fields["quals"], level));
      } else {
        this.#take(level, { depth: 0, joined: 1, items: 1 });
        this.#grow(level, this.#size(kind, fields, level));
      }
    }
  }

  #relation(fields: Fields, level: SelectLevel): void {
    const cte = this.#ctes.get(fields);
    const measure = cte === undefined ? undefined : this.#measures.get(cte);
    // A table of the source, or a recursive expression inside itself.
    if (cte === undefined || measure === undefined || !cte.isInlined) {
      this.#take(level, { depth: 0, joined: 1, items: 1 });
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

  /** The number of parts of an expression, with what stands behind its columns. */
  #size(kind: string, value: unknown, level: SelectLevel): number {
    if (Array.isArray(value)) {
      if (SORTED_LISTS.has(kind)) this.#hold("entries", value.length);
      if (kind === "groupClause") this.#hold("groupings", groupingsOf(value));
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

/** CUBE of n makes 2ⁿ, ROLLUP n + 1, and several beside each other multiply. */
function groupingsOf(list: readonly unknown[]): number {
  return list.reduce<number>((product, item) => product * groupingsOfItem(item), 1);
}

function groupingsOfItem(item: unknown): number {
  const set = isObject(item) ? item["GroupingSet"] : undefined;
  if (!isObject(set)) return 1;
  const content = listOf(set["content"]);
  if (set["kind"] === "GROUPING_SET_CUBE") return 2 ** content.length;
  if (set["kind"] === "GROUPING_SET_ROLLUP") return content.length + 1;
  return content.reduce<number>((sum, inner) => sum + groupingsOfItem(inner), 0) || 1;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The name that PostgreSQL gives a column without AS, where that is its own. */
function lastNameOf(value: unknown): string {
  const column = isObject(value) ? value["ColumnRef"] : undefined;
  return isObject(column) ? (namesIn(column["fields"]).at(-1) ?? "") : "";
}
