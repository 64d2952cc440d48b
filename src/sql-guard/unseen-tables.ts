import { VitrinaError } from "../domain/error-catalogue.ts";
import type { SqlSession } from "../domain/sql-session.ts";
import { findExcess } from "./limits.ts";
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
  // Nothing can be said about a column that cannot be found.
  if (!(await analysis.columnsOf(select, undefined)).includes(key)) return [];
  return [...(await analysis.unseenIn(select, [key], undefined))].sort();
}

/** An item of a FROM: its name, its columns, and what in it goes unseen when only some of them are used. */
interface FromItem {
  readonly name: string;
  readonly columns: readonly string[];
  unseen(used: readonly string[]): Promise<ReadonlySet<string>>;
  /** LATERAL: what the expressions of these columns take from the items beside it. */
  outward(used: readonly string[]): readonly Reference[];
}

/** Common table expressions that can be named somewhere, each with those that its own query can name. */
interface NamedCtes {
  readonly names: ReadonlyMap<string, { readonly cte: Fields; readonly scope: NamedCtes | undefined }>;
  readonly outer: NamedCtes | undefined;
}

const NOTHING: ReadonlySet<string> = new Set();

/** A query has tens of SELECTs, each of which is used in one or two ways. */
const MOST_STEPS = 500;

interface Relation {
  readonly columns: readonly string[];
  readonly query: Fields | undefined;
}

class Analysis {
  readonly #session: SqlSession;
  readonly #relations = new Map<string, Promise<Relation>>();
  /** CTEs that refer to themselves, and anything else that would never end. */
  readonly #underWay = new Set<Fields>();
  readonly #columns = new Map<Fields, readonly string[]>();
  /** By the columns that are used. In a chain of n CTEs that each name the previous one twice, the first is met 2ⁿ times. */
  readonly #unseen = new Map<Fields, Map<string, ReadonlySet<string>>>();
  #steps = 0;

  constructor(session: SqlSession) {
    this.#session = session;
  }

  /** `used`: columns of the result; none of them: everything that is read is unseen. */
  async unseenIn(select: Fields, used: readonly string[], around: NamedCtes | undefined): Promise<ReadonlySet<string>> {
    if (this.#underWay.has(select)) return NOTHING;
    const answers = this.#unseen.get(select) ?? new Map<string, ReadonlySet<string>>();
    this.#unseen.set(select, answers);
    const question = JSON.stringify([...new Set(used)].sort());
    const known = answers.get(question);
    if (known !== undefined) return known;
    this.#takeStep();
    this.#underWay.add(select);
    try {
      const scope = scopeOf(select, around);
      const [left, right] = [select["larg"], select["rarg"]];
      const unseen =
        isObject(left) && isObject(right)
          ? await this.#unseenInBoth(left, right, used, scope)
          : await this.#unseenInOne(select, used, scope);
      answers.set(question, unseen);
      return unseen;
    } finally {
      this.#underWay.delete(select);
    }
  }

  /** It is still possible to write a query that is used in ever more ways; nobody needs an answer for it. */
  #takeStep(): void {
    this.#steps += 1;
    if (this.#steps > MOST_STEPS)
      throw new VitrinaError("STATEMENT_TIMEOUT", "The query refers to itself in too many ways.");
  }

  /** The columns of a UNION have the names of its first query, and match the others by position. */
  async #unseenInBoth(
    left: Fields,
    right: Fields,
    used: readonly string[],
    scope: NamedCtes | undefined,
  ): Promise<ReadonlySet<string>> {
    const [ofLeft, ofRight] = [await this.columnsOf(left, scope), await this.columnsOf(right, scope)];
    const usedOfRight = used.flatMap((name) => ofRight[ofLeft.indexOf(name)] ?? []);
    return union([await this.unseenIn(left, used, scope), await this.unseenIn(right, usedOfRight, scope)]);
  }

  /** One after the other: a CTE that is met while it is being analysed refers to itself. */
  async #unseenInOne(
    select: Fields,
    used: readonly string[],
    scope: NamedCtes | undefined,
  ): Promise<ReadonlySet<string>> {
    const items = await this.#itemsOf(listOf(select["fromClause"]), scope);
    const { fromClause, withClause: _, targetList, ...clauses } = select;
    const [ofKey, others] = splitTargets(listOf(targetList), used, items);
    const direct = referencesIn(ofKey);
    const keys = [...direct, ...items.flatMap((item) => item.outward(columnsTaken(item, direct)))];
    const unseen: ReadonlySet<string>[] = [];
    for (const item of items) unseen.push(await item.unseen(columnsTaken(item, keys)));
    for (const sub of subqueriesIn(ofKey)) unseen.push(await this.#unseenInValue(sub, scope));
    for (const sub of subqueriesIn([clauses, fromClause, others])) unseen.push(await this.unseenIn(sub, [], scope));
    return union(unseen);
  }

  /** A subquery in the key's expression: its own column is the one used. */
  async #unseenInValue(select: Fields, scope: NamedCtes | undefined): Promise<ReadonlySet<string>> {
    return this.unseenIn(select, (await this.columnsOf(select, scope)).slice(0, 1), scope);
  }

  async #itemsOf(from: readonly unknown[], scope: NamedCtes | undefined): Promise<FromItem[]> {
    const items: FromItem[] = [];
    for (const node of from) {
      const [kind = "", fields] = Object.entries(isObject(node) ? node : {})[0] ?? [];
      if (!isObject(fields)) continue;
      if (kind === "JoinExpr") items.push(...(await this.#itemsOf([fields["larg"], fields["rarg"]], scope)));
      else if (kind === "RangeVar") items.push(await this.#namedItem(fields, scope));
      else if (kind === "RangeSubselect") {
        const item = await this.#queryItem(aliasOf(fields), selectOf(fields["subquery"]), scope);
        items.push(fields["lateral"] === true ? item : { ...item, outward: () => [] });
      }
    }
    return items;
  }

  async #namedItem(fields: Fields, scope: NamedCtes | undefined): Promise<FromItem> {
    const { schemaname, relname } = fields;
    const alias = aliasOf(fields);
    const name = alias.name === "" ? textOf(relname) : alias.name;
    const found = schemaname === undefined ? lookUp(textOf(relname), scope) : undefined;
    if (found !== undefined) {
      const { aliascolnames, ctequery } = found.cte;
      const columns = alias.columns.length > 0 ? alias.columns : namesIn(aliascolnames);
      return { ...(await this.#queryItem({ name, columns }, selectOf(ctequery), found.scope)), outward: () => [] };
    }
    const { columns, query } = await this.#relation(textOf(schemaname), textOf(relname));
    if (query !== undefined) {
      const own = alias.columns.length > 0 ? alias.columns : columns;
      return { ...(await this.#queryItem({ name, columns: own }, query, undefined)), outward: () => [] };
    }
    const label = shown(textOf(schemaname), textOf(relname));
    return {
      name,
      columns: renamed(columns, alias.columns),
      unseen: async (used) => (used.length > 0 ? NOTHING : new Set([label])),
      outward: () => [],
    };
  }

  async #queryItem(alias: Alias, select: Fields, scope: NamedCtes | undefined): Promise<FromItem> {
    const inner = this.#underWay.has(select) ? [] : await this.columnsOf(select, scope);
    const columns = renamed(inner, alias.columns);
    const own = (used: readonly string[]): string[] => used.flatMap((name) => inner[columns.indexOf(name)] ?? []);
    return {
      name: alias.name,
      columns,
      unseen: (used) => this.unseenIn(select, own(used), scope),
      outward: (used) =>
        referencesIn(splitTargets(listOf(select["targetList"]), own(used), [])[0]).filter(({ table }) => table !== ""),
    };
  }

  async columnsOf(select: Fields, around: NamedCtes | undefined): Promise<readonly string[]> {
    const known = this.#columns.get(select);
    if (known !== undefined) return known;
    // What a star selects from a CTE that is still being analysed is not worth a guess.
    this.#columns.set(select, []);
    const columns = await this.#findColumns(select, scopeOf(select, around));
    this.#columns.set(select, columns);
    return columns;
  }

  async #findColumns(select: Fields, scope: NamedCtes | undefined): Promise<readonly string[]> {
    if (isObject(select["larg"])) return this.columnsOf(select["larg"], scope);
    const items = hasStar(select) ? await this.#itemsOf(listOf(select["fromClause"]), scope) : [];
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
    // If the parser might not cope, the view counts as a table.
    const statements = query == null || (await findExcess(query)) !== undefined ? [] : await statementsOf(query);
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

interface OutputColumn {
  readonly name: string;
  readonly value: unknown;
}

/** The columns of a SELECT; a star is written out. */
function targetsOf(list: readonly unknown[], items: readonly FromItem[]): OutputColumn[] {
  return list.flatMap((entry): OutputColumn[] => {
    const target = (entry as { ResTarget?: Fields }).ResTarget ?? {};
    const reference = referenceOf(target["val"]);
    if (reference?.isStar !== true) {
      return [{ name: textOf(target["name"]) || madeUpName(target["val"]), value: target["val"] }];
    }
    const meant = items.filter(({ name }) => reference.table === "" || name === reference.table);
    return meant.flatMap((item) => item.columns.map((name) => ({ name, value: columnRef(item.name, name) })));
  });
}

/** The name that PostgreSQL gives a column without AS; empty where it is not worth a guess. */
function madeUpName(value: unknown): string {
  const [kind = "", node] = Object.entries(isObject(value) ? value : {})[0] ?? [];
  const fields: Fields = isObject(node) ? node : {};
  switch (kind) {
    case "ColumnRef":
      return namesIn(fields["fields"]).at(-1) ?? "";
    case "FuncCall":
      return namesIn(fields["funcname"]).at(-1) ?? "";
    case "TypeCast":
    case "CollateClause":
      return madeUpName(fields["arg"]);
    case "CoalesceExpr":
      return "coalesce";
    case "MinMaxExpr":
      return fields["op"] === "IS_LEAST" ? "least" : "greatest";
    default:
      return "";
  }
}

/** The expressions of the columns that are used, and the others. */
function splitTargets(
  list: readonly unknown[],
  used: readonly string[],
  items: readonly FromItem[],
): [unknown[], unknown[]] {
  const targets = targetsOf(list, items);
  const isUsed = ({ name }: OutputColumn): boolean => used.includes(name);
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

/** Without a table's name, a column belongs to whichever item has it; merged by USING, to all of them. */
function columnsTaken(item: FromItem, references: readonly Reference[]): string[] {
  const own = new Set(item.columns);
  const taken = references.filter(({ table, column }) => (table === "" ? own.has(column) : table === item.name));
  return [...new Set(taken.map(({ column }) => column))].filter((column) => column !== "");
}

/** The outermost subqueries in expressions; those that are items of a FROM themselves are not among them. */
function subqueriesIn(node: unknown): Fields[] {
  if (!isObject(node)) return [];
  return Object.entries(node).flatMap(([kind, value]) => {
    if (kind === "SubLink" && isObject(value)) return [selectOf(value["subselect"])];
    return kind === "RangeSubselect" ? [] : subqueriesIn(value);
  });
}

/** Each CTE sees those before it, or all of them if recursive. */
function scopeOf({ withClause }: Fields, outer: NamedCtes | undefined): NamedCtes | undefined {
  if (!isObject(withClause)) return outer;
  const names = new Map<string, { cte: Fields; scope: NamedCtes | undefined }>();
  const all: NamedCtes = { names, outer };
  let before = outer;
  for (const node of listOf(withClause["ctes"])) {
    const cte = (node as { CommonTableExpr?: Fields }).CommonTableExpr;
    if (cte === undefined) continue;
    const found = { cte, scope: withClause["recursive"] === true ? all : before };
    names.set(textOf(cte["ctename"]), found);
    before = { names: new Map([[textOf(cte["ctename"]), found]]), outer: before };
  }
  return all;
}

function lookUp(name: string, scope: NamedCtes | undefined): { cte: Fields; scope: NamedCtes | undefined } | undefined {
  return scope === undefined ? undefined : (scope.names.get(name) ?? lookUp(name, scope.outer));
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
