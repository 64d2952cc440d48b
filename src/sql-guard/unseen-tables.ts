import type { SqlSession } from "../domain/sql-session.ts";
import { shown } from "./refusal.ts";
import { type Fields, isObject, namesIn, type Statement, statementsOf, textOf } from "./tree.ts";

/**
 * Which tables a query reads whose changes its incremental key does not show: all but those that the key's expression
 * takes a column from. Read off the parse tree; the catalogue is asked for the columns of tables, and for the queries
 * of views, which are followed in the same way.
 */
export async function unseenTables(session: SqlSession, query: string, key: string): Promise<readonly string[]> {
  const statements = await statementsOf(query);
  const [statement] = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
  if (statement === undefined) return [];
  const analysis = new Analysis(session);
  const select = selectOf(statement.node);
  // A name that PostgreSQL made up is not worth a guess.
  if (!(await analysis.columnsOf(select, NO_CTES)).includes(key)) return [];
  return [...(await analysis.unseenIn(select, [key], NO_CTES))].sort();
}

/** Something in a FROM: what it is called, what columns it has, and what of it is not seen when only some are used. */
interface Item {
  readonly name: string;
  readonly columns: readonly string[];
  unseen(used: readonly string[]): Promise<ReadonlySet<string>>;
  /** LATERAL: what the expressions of these columns take from the items beside it. */
  outward(used: readonly string[]): readonly Reference[];
}

type Ctes = ReadonlyMap<string, Fields>;

const NO_CTES: Ctes = new Map();
const NOTHING: ReadonlySet<string> = new Set();

interface Relation {
  readonly columns: readonly string[];
  readonly query: Fields | undefined;
}

class Analysis {
  readonly #session: SqlSession;
  readonly #relations = new Map<string, Promise<Relation>>();
  /** CTEs that refer to themselves, and what else would never end. */
  readonly #underWay = new Set<Fields>();

  constructor(session: SqlSession) {
    this.#session = session;
  }

  /** `used`: columns of the result; none of them: everything that is read is unseen. */
  async unseenIn(select: Fields, used: readonly string[], around: Ctes): Promise<ReadonlySet<string>> {
    if (this.#underWay.has(select)) return NOTHING;
    this.#underWay.add(select);
    try {
      const ctes = new Map([...around, ...ctesOf(select)]);
      const [left, right] = [select["larg"], select["rarg"]];
      if (isObject(left) && isObject(right)) return await this.#unseenInBoth(left, right, used, ctes);
      return await this.#unseenInOne(select, used, ctes);
    } finally {
      this.#underWay.delete(select);
    }
  }

  /** The columns of a UNION have the names of its first query, and the places of all. */
  async #unseenInBoth(left: Fields, right: Fields, used: readonly string[], ctes: Ctes): Promise<ReadonlySet<string>> {
    const [ofLeft, ofRight] = [await this.columnsOf(left, ctes), await this.columnsOf(right, ctes)];
    const usedOfRight = used.flatMap((name) => ofRight[ofLeft.indexOf(name)] ?? []);
    return union([await this.unseenIn(left, used, ctes), await this.unseenIn(right, usedOfRight, ctes)]);
  }

  /** One after the other: a CTE that is under way is one that refers to itself. */
  async #unseenInOne(select: Fields, used: readonly string[], ctes: Ctes): Promise<ReadonlySet<string>> {
    const items = await this.#itemsOf(listOf(select["fromClause"]), ctes);
    const { fromClause, withClause: _, targetList, ...clauses } = select;
    const [ofKey, others] = splitTargets(listOf(targetList), used, items);
    const direct = referencesIn(ofKey);
    const keys = [...direct, ...items.flatMap((item) => item.outward(columnsTaken(item, direct, items)))];
    const unseen: ReadonlySet<string>[] = [];
    for (const item of items) unseen.push(await item.unseen(columnsTaken(item, keys, items)));
    for (const sub of subqueriesIn(ofKey)) unseen.push(await this.#unseenInValue(sub, ctes));
    for (const sub of subqueriesIn([clauses, fromClause, others])) unseen.push(await this.unseenIn(sub, [], ctes));
    return union(unseen);
  }

  /** A subquery in the expression of the key: its own column is what is used of it. */
  async #unseenInValue(select: Fields, ctes: Ctes): Promise<ReadonlySet<string>> {
    return this.unseenIn(select, (await this.columnsOf(select, ctes)).slice(0, 1), ctes);
  }

  async #itemsOf(from: readonly unknown[], ctes: Ctes): Promise<Item[]> {
    const items: Item[] = [];
    for (const node of from) {
      const [kind = "", fields] = Object.entries(isObject(node) ? node : {})[0] ?? [];
      if (!isObject(fields)) continue;
      if (kind === "JoinExpr") items.push(...(await this.#itemsOf([fields["larg"], fields["rarg"]], ctes)));
      else if (kind === "RangeVar") items.push(await this.#namedItem(fields, ctes));
      else if (kind === "RangeSubselect") {
        const item = await this.#queryItem(aliasOf(fields), selectOf(fields["subquery"]), ctes);
        items.push(fields["lateral"] === true ? item : { ...item, outward: () => [] });
      }
    }
    return items;
  }

  async #namedItem(fields: Fields, ctes: Ctes): Promise<Item> {
    const { schemaname, relname } = fields;
    const alias = aliasOf(fields);
    const name = alias.name === "" ? textOf(relname) : alias.name;
    const cte = schemaname === undefined ? ctes.get(textOf(relname)) : undefined;
    if (cte !== undefined) {
      const columns = alias.columns.length > 0 ? alias.columns : namesIn(cte["aliascolnames"]);
      return { ...(await this.#queryItem({ name, columns }, selectOf(cte["ctequery"]), ctes)), outward: () => [] };
    }
    const { columns, query } = await this.#relation(textOf(schemaname), textOf(relname));
    if (query !== undefined) {
      const own = alias.columns.length > 0 ? alias.columns : columns;
      return { ...(await this.#queryItem({ name, columns: own }, query, NO_CTES)), outward: () => [] };
    }
    const label = shown(textOf(schemaname), textOf(relname));
    return {
      name,
      columns: renamed(columns, alias.columns),
      unseen: async (used) => (used.length > 0 ? NOTHING : new Set([label])),
      outward: () => [],
    };
  }

  async #queryItem(alias: Alias, select: Fields, ctes: Ctes): Promise<Item> {
    const inner = this.#underWay.has(select) ? [] : await this.columnsOf(select, ctes);
    const columns = renamed(inner, alias.columns);
    const own = (used: readonly string[]): string[] => used.flatMap((name) => inner[columns.indexOf(name)] ?? []);
    return {
      name: alias.name,
      columns,
      unseen: (used) => this.unseenIn(select, own(used), ctes),
      outward: (used) =>
        referencesIn(splitTargets(listOf(select["targetList"]), own(used), [])[0]).filter(({ table }) => table !== ""),
    };
  }

  async columnsOf(select: Fields, around: Ctes): Promise<readonly string[]> {
    const ctes = new Map([...around, ...ctesOf(select)]);
    if (isObject(select["larg"])) return this.columnsOf(select["larg"], ctes);
    const items = hasStar(select) ? await this.#itemsOf(listOf(select["fromClause"]), ctes) : [];
    return targetsOf(listOf(select["targetList"]), items).map(({ name }) => name);
  }

  #relation(schema: string, name: string): Promise<Relation> {
    const id = shown(schema, name);
    const known = this.#relations.get(id);
    const found = known ?? this.#ask(schema, name);
    this.#relations.set(id, found);
    return found;
  }

  async #ask(schema: string, name: string): Promise<Relation> {
    const { rows } = await this.#session.query(COLUMNS_AND_QUERY, [schema, name]);
    const { columns, query } = (rows[0] ?? {}) as { columns?: string; query?: string | null };
    const names = JSON.parse(columns ?? "[]") as string[];
    const statements = query == null ? [] : await statementsOf(query);
    const [view] = Array.isArray(statements) ? (statements as readonly Statement[]) : [];
    return { columns: names, query: view === undefined ? undefined : selectOf(view.node) };
  }
}

/** A materialised view is a table of its own: it changes when it is refreshed. */
const COLUMNS_AND_QUERY = `
  SELECT (SELECT coalesce(json_agg(a.attname ORDER BY a.attnum), '[]')::text FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
         CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END AS query
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`;

interface Target {
  readonly name: string;
  readonly value: unknown;
}

/** The columns of a SELECT; a star is written out. */
function targetsOf(list: readonly unknown[], items: readonly Item[]): Target[] {
  return list.flatMap((entry): Target[] => {
    const target = (entry as { ResTarget?: Fields }).ResTarget ?? {};
    const reference = referenceOf(target["val"]);
    if (reference?.isStar !== true) {
      return [{ name: textOf(target["name"]) || (reference?.column ?? ""), value: target["val"] }];
    }
    const meant = items.filter(({ name }) => reference.table === "" || name === reference.table);
    return meant.flatMap((item) => item.columns.map((name) => ({ name, value: columnRef(item.name, name) })));
  });
}

/** The expressions of the columns that are used, and the others. */
function splitTargets(
  list: readonly unknown[],
  used: readonly string[],
  items: readonly Item[],
): [unknown[], unknown[]] {
  const targets = targetsOf(list, items);
  const isUsed = ({ name }: Target): boolean => used.includes(name);
  return [targets.filter(isUsed), targets.filter((target) => !isUsed(target))].map((part) =>
    part.map(({ value }) => value),
  ) as [unknown[], unknown[]];
}

interface Reference {
  readonly table: string;
  readonly column: string;
  readonly isStar: boolean;
}

function referenceOf(node: unknown): Reference | undefined {
  const fields = (node as { ColumnRef?: { fields?: unknown } } | undefined)?.ColumnRef?.fields;
  if (!Array.isArray(fields)) return undefined;
  const parts = namesIn(fields);
  const isStar = isObject(fields.at(-1)) && "A_Star" in (fields.at(-1) as Fields);
  return { table: parts.at(-2) ?? "", column: isStar ? "" : (parts.at(-1) ?? ""), isStar };
}

const columnRef = (table: string, column: string): Fields => ({
  ColumnRef: { fields: [{ String: { sval: table } }, { String: { sval: column } }] },
});

/** Also those in subqueries: one may refer to a table around it. */
function referencesIn(nodes: unknown): Reference[] {
  if (!isObject(nodes)) return [];
  const own = referenceOf(nodes);
  if (own !== undefined) return [own];
  return Object.values(nodes).flatMap(referencesIn);
}

/** Without a table's name a column belongs to whoever has it; merged by USING, to all of them. */
function columnsTaken(item: Item, references: readonly Reference[], items: readonly Item[]): string[] {
  const isNamed = (name: string): boolean => items.some((one) => one.name === name);
  return references
    .filter(({ table, column }) =>
      table === "" || !isNamed(table) ? table === "" && item.columns.includes(column) : item.name === table,
    )
    .map(({ column }) => column)
    .filter((column) => column !== "");
}

/** The outermost subqueries in expressions; those that are items of a FROM themselves are not among them. */
function subqueriesIn(node: unknown): Fields[] {
  if (!isObject(node)) return [];
  return Object.entries(node).flatMap(([kind, value]) => {
    if (kind === "SubLink" && isObject(value)) return [selectOf(value["subselect"])];
    return kind === "RangeSubselect" ? [] : subqueriesIn(value);
  });
}

function ctesOf(select: Fields): [string, Fields][] {
  const { withClause } = select;
  const list = isObject(withClause) ? listOf(withClause["ctes"]) : [];
  return list.flatMap((node): [string, Fields][] => {
    const cte = (node as { CommonTableExpr?: Fields }).CommonTableExpr;
    return cte === undefined ? [] : [[textOf(cte["ctename"]), cte]];
  });
}

interface Alias {
  readonly name: string;
  readonly columns: readonly string[];
}

function aliasOf({ alias }: Fields): Alias {
  const fields = isObject(alias) ? alias : {};
  return { name: textOf(fields["aliasname"]), columns: namesIn(fields["colnames"]) };
}

const renamed = (columns: readonly string[], names: readonly string[]): string[] =>
  columns.map((column, index) => names[index] ?? column);

/** A statement, or what a set operation has without its kind. */
function selectOf(node: unknown): Fields {
  const inner = (node as { SelectStmt?: Fields } | undefined)?.SelectStmt;
  return inner ?? (isObject(node) ? node : {});
}

function hasStar({ targetList }: Fields): boolean {
  return JSON.stringify(targetList ?? []).includes('"A_Star"');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function union(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  return new Set(sets.flatMap((set) => [...set]));
}
