import fc from "fast-check";
import type { FollowedQuery } from "./queries.ts";
import { TABLES } from "./schema.ts";

/** Random queries: joins of all kinds, nesting, grouping, windows, subqueries and set operations over integer columns. */

interface Item {
  readonly alias: string;
  readonly columns: readonly string[];
}

/** Takes its decisions from a list of random numbers. */
class Generator {
  readonly #numbers: readonly number[];
  #next = 0;
  #aliases = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  query(name: string): FollowedQuery {
    const columns = this.#draw(4) === 0 ? 2 : 1;
    const key = Array.from({ length: columns }, (_, index) => `k${index}`);
    const sql =
      this.#draw(9) === 0
        ? `(${this.#select(key, 0)}) ${this.#setOperation()} (${this.#select(key, 0)})`
        : this.#select(key, 0);
    return { name, key, sql };
  }

  #draw(below: number): number {
    this.#next += 1;
    return (this.#numbers[this.#next % this.#numbers.length] ?? 0) % below;
  }

  #one<T>(choices: readonly T[]): T {
    return choices[this.#draw(choices.length)] as T;
  }

  #alias(): string {
    this.#aliases += 1;
    return `t${this.#aliases}`;
  }

  #setOperation(): string {
    return this.#one(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"]);
  }

  /** With the wanted columns first, and one more, `v`. */
  #select(wanted: readonly string[], depth: number): string {
    const items: Item[] = [];
    const from = this.#from(items, depth);
    const where = this.#where(items, depth);
    const columns = wanted.map((name) => ({ name, value: this.#column(items) }));
    const list = columns.map(({ name, value }) => `${value} AS ${name}`).join(", ");
    const by = columns.map(({ value }) => value).join(", ");
    const shape = this.#draw(10);
    if (shape < 3)
      return `SELECT ${list}, ${this.#aggregate(items)} AS v FROM ${from}${where} GROUP BY ${by}${this.#having(items)}`;
    if (shape === 3) return `SELECT DISTINCT ${list}, ${this.#column(items)} AS v FROM ${from}${where}`;
    if (shape === 4) return `SELECT ${list}, ${this.#window(items)} AS v FROM ${from}${where}`;
    if (shape === 5) {
      const [on, v] = [this.#one([columns[0]?.value ?? "", this.#column(items)]), this.#column(items)];
      return `SELECT DISTINCT ON (${on}) ${list}, ${v} AS v FROM ${from}${where} ORDER BY ${on}, ${by}, ${v}`;
    }
    if (shape === 6) return `SELECT ${list}, ${this.#scalar(items, depth)} AS v FROM ${from}${where}`;
    return `SELECT ${list}, ${this.#column(items)} AS v FROM ${from}${where}`;
  }

  #column(items: readonly Item[]): string {
    const { alias, columns } = this.#one(items);
    return `${alias}.${this.#one(columns)}`;
  }

  #aggregate(items: readonly Item[]): string {
    return this.#one([
      "count(*)",
      `count(${this.#column(items)})`,
      `sum(${this.#column(items)})::bigint`,
      `max(${this.#column(items)})`,
    ]);
  }

  #having(items: readonly Item[]): string {
    return this.#draw(4) === 0 ? ` HAVING ${this.#aggregate(items)} > 1` : "";
  }

  #window(items: readonly Item[]): string {
    const call = this.#one(["rank()", "count(*)"]);
    const by = this.#draw(5) === 0 ? `${this.#column(items)}, ${this.#column(items)}` : this.#column(items);
    return `${call} OVER (PARTITION BY ${by} ORDER BY ${this.#column(items)})`;
  }

  #scalar(items: readonly Item[], depth: number): string {
    const inner: Item[] = [];
    const from = this.#from(inner, depth + 1);
    return `(SELECT max(${this.#column(inner)}) FROM ${from} WHERE ${this.#column(inner)} = ${this.#column(items)})`;
  }

  #from(items: Item[], depth: number): string {
    let from = this.#item(items, depth);
    const more = depth === 0 ? this.#one([0, 1, 1, 2, 2, 3]) : this.#one([0, 0, 0, 1, 1]);
    for (let count = 0; count < more; count += 1) {
      const left = [...items];
      const kind = this.#one([
        "JOIN",
        "JOIN",
        "LEFT JOIN",
        "LEFT JOIN",
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL JOIN",
        "LATERAL",
      ]);
      if (kind === "LATERAL") from = `${from} ${this.#lateral(items, depth)}`;
      else {
        const right: Item[] = [];
        const item = this.#draw(5) === 0 ? `(${this.#nested(right, depth)})` : this.#item(right, depth);
        items.push(...right);
        from = `${from} ${kind} ${item} ON ${this.#on(left, right, kind)}`;
      }
    }
    return from;
  }

  #nested(items: Item[], depth: number): string {
    const [left, right]: [Item[], Item[]] = [[], []];
    const [one, other] = [this.#item(left, depth), this.#item(right, depth)];
    items.push(...left, ...right);
    const kind = this.#one(["JOIN", "LEFT JOIN"]);
    return `${one} ${kind} ${other} ON ${this.#on(left, right, kind)}`;
  }

  #on(left: readonly Item[], right: readonly Item[], kind: string): string {
    const parts = [`${this.#column(right)} = ${this.#column(left)}`];
    if (kind === "FULL JOIN") return parts.join("");
    if (this.#draw(5) === 0) parts.push(`${this.#column(right)} = ${this.#column(left)}`);
    if (this.#draw(6) === 0) parts.push(`${this.#column(right)} < ${this.#column(left)}`);
    if (this.#draw(10) === 0) parts.push(`COALESCE(${this.#column(left)}, 1) = ${this.#column(right)}`);
    return parts.join(" AND ");
  }

  #lateral(items: Item[], depth: number): string {
    const inner: Item[] = [];
    const from = this.#from(inner, depth + 1);
    const [mine, theirs, column, alias] = [
      this.#column(inner),
      this.#column(items),
      this.#column(inner),
      this.#alias(),
    ];
    const end = this.#one([`max(${column}) AS a, count(*)::int AS b`, null]);
    const where = `FROM ${from} WHERE ${mine} = ${theirs}`;
    const body =
      end === null ? `SELECT ${column} AS a, ${mine} AS b ${where} ORDER BY 1, 2 LIMIT 1` : `SELECT ${end} ${where}`;
    items.push({ alias, columns: ["a", "b"] });
    return `${this.#one(["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"])} (${body}) ${alias}`.replace(
      /^(LEFT JOIN LATERAL .*)$/s,
      "$1 ON true",
    );
  }

  #item(items: Item[], depth: number): string {
    const alias = this.#alias();
    if (depth < 2 && this.#draw(4 + 4 * depth) === 0) {
      const isSet = this.#draw(5) === 0;
      const body = this.#select(["a", "b"], depth + 1);
      const sql = isSet ? `(${body}) ${this.#setOperation()} (${this.#select(["a", "b"], depth + 1)})` : body;
      items.push({ alias, columns: ["a", "b", "a", "b", "v"] });
      return `(${sql}) ${alias}`;
    }
    const [table, columns] = this.#one(Object.entries(TABLES));
    const integers = Object.entries(columns).filter(([, type]) => type === "int");
    items.push({ alias, columns: integers.map(([name]) => name) });
    return `content.${table} ${alias}`;
  }

  #where(items: readonly Item[], depth: number): string {
    const conditions = Array.from({ length: this.#one([0, 0, 0, 1, 1, 2]) }, () => this.#condition(items, depth));
    return conditions.length === 0 ? "" : ` WHERE ${conditions.join(this.#draw(6) === 0 ? " OR " : " AND ")}`;
  }

  #condition(items: readonly Item[], depth: number): string {
    const own = this.#column(items);
    const kind = this.#draw(depth < 2 ? 11 : 5);
    if (kind === 0) return `${own} = ${this.#column(items)}`;
    if (kind === 1) return `${own} IS NOT NULL`;
    if (kind === 2) return `${own} > ${this.#draw(12)}`;
    if (kind === 3) return `COALESCE(${own}, 1) = ${this.#column(items)}`;
    if (kind === 4) return `${own} IS NULL`;
    const inner: Item[] = [];
    const from = this.#from(inner, depth + 1);
    const mine = this.#column(inner);
    const more = this.#where(inner, depth + 1).replace(" WHERE ", " AND ");
    if (kind <= 6) return `EXISTS (SELECT FROM ${from} WHERE ${mine} = ${own}${more})`;
    if (kind <= 8) return `NOT EXISTS (SELECT FROM ${from} WHERE ${mine} = ${own}${more})`;
    if (kind === 9) return `${own} IN (SELECT ${mine} FROM ${from} WHERE true${more})`;
    return `${own} IN (SELECT ${mine} FROM ${from} WHERE true${more} GROUP BY ${mine} HAVING count(*) > 1)`;
  }
}

export function generatedQueries(count: number): readonly FollowedQuery[] {
  const tapes = fc.sample(fc.array(fc.nat(100_000), { minLength: 200, maxLength: 200 }), count);
  return tapes.map((tape, index) => new Generator(tape).query(`generated ${index}`));
}
