import { type Fields, isObject, namesIn, textOf } from "./tree.ts";

/** A column of a subquery, and how large the expression behind it is. Without a name: unknown. */
export interface SizedColumn {
  readonly name: string;
  readonly size: number;
}

/** A column of a table, about which nothing is known. */
const PLAIN = 1;

/** The columns that the expressions of one SELECT can name, its own and those of the SELECTs around it. */
export class SizedColumns {
  readonly #outer: SizedColumns | undefined;
  readonly #all: SizedColumn[] = [];
  readonly #byName = new Map<string, number>();
  readonly #byItem = new Map<
    string,
    { readonly columns: readonly SizedColumn[]; readonly sizes: Map<string, number> }
  >();

  constructor(outer: SizedColumns | undefined) {
    this.#outer = outer;
  }

  /** `columns` is undefined for a table, whose columns are not known here. */
  addItem(alias: unknown, ownName: string, columns: readonly SizedColumn[] = [{ name: "", size: PLAIN }]): void {
    const { aliasname, colnames }: Fields = isObject(alias) ? alias : {};
    const named = renamed(columns, namesIn(colnames));
    const sizes = new Map<string, number>();
    for (const { name, size } of named) {
      this.#all.push({ name, size });
      raise(sizes, name, size);
      raise(this.#byName, name, size);
    }
    this.#byItem.set(textOf(aliasname) || ownName, { columns: named, sizes });
  }

  /** `["q", "a"]`, or `["a"]`; also a whole row, `["q"]`. */
  sizeOf(names: readonly string[]): number {
    const [name = "", item] = [names.at(-1), names.at(-2)];
    const columnsOfItem = item === undefined ? undefined : this.#byItem.get(item)?.sizes;
    const sizes = columnsOfItem ?? this.#byName;
    const row = this.#byItem.get(name)?.columns.reduce((sum, { size }) => sum + size, 0);
    // A column whose name is unknown may be the one that is meant.
    const found = sizes.get(name) ?? sizes.get("");
    if (found === undefined && row === undefined) return this.#outer?.sizeOf(names) ?? PLAIN;
    return Math.max(PLAIN, found ?? 0, row ?? 0);
  }

  /** The columns of `*`, or of one item of FROM. */
  columnsOf(item: string | undefined): readonly SizedColumn[] {
    if (item === undefined) return this.#all;
    return this.#byItem.get(item)?.columns ?? [{ name: "", size: PLAIN }];
  }
}

function raise(sizes: Map<string, number>, name: string, size: number): void {
  sizes.set(name, Math.max(sizes.get(name) ?? 0, size));
}

/** The columns that `*` or `q.*` stands for; `undefined` when the value is something else. */
export function expanded(value: unknown, columns: SizedColumns): readonly SizedColumn[] | undefined {
  const reference = isObject(value) ? value["ColumnRef"] : undefined;
  const fields = isObject(reference) && Array.isArray(reference["fields"]) ? reference["fields"] : [];
  const last: unknown = fields.at(-1);
  if (!isObject(last) || !("A_Star" in last)) return undefined;
  return columns.columnsOf(namesIn(fields).at(-2));
}

/** `AS q (a, b)`. If a table's columns are among them, it is unknown which is which, so each may be the largest. */
export function renamed(columns: readonly SizedColumn[], names: readonly string[]): readonly SizedColumn[] {
  if (names.length === 0) return columns;
  const areCounted = columns.every(({ name }) => name !== "");
  const largest = columns.reduce((most, { size }) => Math.max(most, size), PLAIN);
  if (!areCounted) return [...names.map((name) => ({ name, size: largest })), ...columns];
  return columns.map(({ name, size }, index) => ({ name: names[index] ?? name, size }));
}
