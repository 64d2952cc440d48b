import { setImmediate } from "node:timers/promises";
import type { FollowedTableChoice, FollowTables } from "../domain/follow.ts";
import { relationName } from "../domain/relation-name.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import { shown } from "../sql-guard/refusal.ts";
import { type ExplicitKeys, readExplicitKeys } from "./explicit-keys.ts";
import type { FollowedTable, FollowPlan, FollowRefusal, ImagesOf, TableChange } from "./follow-plan.ts";
import { keyWays } from "./key-ways.ts";
import { type FromLeaf, NO_CONDITION, type QueryBlock } from "./model.ts";
import { ownPlaces } from "./own-places.ts";
import { placesIn, type TablePlace } from "./places.ts";
import type { FactColumn, QueryFacts, RelationFacts } from "./query-facts.ts";
import { QueryReader } from "./read-query.ts";
import { readQuery } from "./read-texts.ts";
import { restricter } from "./restrict.ts";
import {
  ANOTHER_QUERY,
  CORRECT,
  EVERYTHING_OR_KEYS,
  IGNORE,
  STORED_OR_EVERYTHING,
  TOO_MUCH_WORK,
  tableLabel,
} from "./sentences.ts";
import { keyValue, StatementWriter } from "./statements.ts";
import { changesByItself, warningAboutKey, warningsAbout, warningsAboutTexts } from "./warnings.ts";
import type { Way } from "./ways.ts";
import { TooMuchWork, WorkBudget } from "./work.ts";

/**
 * How the changes of its tables are followed to the keys of a mart. What cannot be proven is refused: nothing is
 * guessed, and nothing is followed in part.
 */
export async function planFollow(facts: QueryFacts, key: readonly string[], tables: FollowTables): Promise<FollowPlan> {
  const budget = new WorkBudget();
  const read = await readQuery(facts, budget);
  if ("why" in read) return refusedPlan(facts, key, [ofQuery(read.why)]);
  const positions = key.map((name) => facts.columns.findIndex((column) => column.name === name));
  const missing = key.filter((_, index) => positions[index] === -1);
  if (key.length === 0 || missing.length > 0) {
    const what =
      key.length === 0
        ? "The mart has no key"
        : `The query has no column ${missing.map((name) => shown(name)).join(", ")}`;
    return refusedPlan(facts, key, [ofQuery(`${what}: a mart that follows is written by its key.`)]);
  }
  try {
    return await planOf(facts, positions, read, tables, budget);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    return refusedPlan(facts, key, [ofQuery(TOO_MUCH_WORK)]);
  }
}

async function planOf(
  facts: QueryFacts,
  positions: readonly number[],
  { block, reader }: { readonly block: QueryBlock; readonly reader: QueryReader },
  tables: FollowTables,
  budget: WorkBudget,
): Promise<FollowPlan> {
  const planner = new TablePlanner(facts, positions, block, reader, tables, budget);
  const planned = await planner.plan();
  await setImmediate();
  return {
    tables: planned.tables,
    refusals: [
      ...queryRefusals(facts, positions, reader),
      ...refusedChoices(tables, planned.known),
      ...planned.refusals,
    ],
    warnings: [
      ...positions.flatMap((position) => facts.columns[position] ?? []).flatMap(warningAboutKey),
      ...warningsAbout(
        reader.aggregates,
        reader.calls.map(({ name }) => name),
        reader.hasFrameOfRows,
        block,
      ),
      ...warningsAboutTexts(facts),
    ],
    surroundings: facts.surroundings,
    restrictedTo: budget.take(() => restricter(facts, positions, block, reader)),
  };
}

function queryRefusals(
  facts: QueryFacts,
  positions: readonly number[],
  { unresolved, unknownRelations, calls }: QueryReader,
): readonly FollowRefusal[] {
  const ofOwnEquality = positions
    .flatMap((position) => facts.columns[position] ?? [])
    .filter(({ ownEquality }) => ownEquality !== null);
  const messages = [
    ...ofOwnEquality.map(({ name, type, ownEquality }) =>
      ownEquality === "type"
        ? `The key ${shown(name)} has the type ${type}, whose values are compared in a way of its own.`
        : `The key ${shown(name)} has a collation in which different texts are equal: which of them the mart has cannot be told.`,
    ),
    ...changesByItself(calls, facts),
    ...[...unresolved].map(
      (name) => `What ${shown(name)} means cannot be told from the query as PostgreSQL prints it.`,
    ),
    ...[...unknownRelations].map((name) => `Nothing is known about ${shown(name)}, which the query reads.`),
  ];
  return messages.map(ofQuery);
}

function ofQuery(message: string): FollowRefusal {
  return { table: null, message, wayOut: ANOTHER_QUERY };
}

function refusedPlan(facts: QueryFacts, key: readonly string[], refusals: readonly FollowRefusal[]): FollowPlan {
  const positions = key.flatMap((name) => {
    const position = facts.columns.findIndex((column) => column.name === name);
    return position === -1 ? [] : [position];
  });
  const nothing: QueryBlock = {
    kind: "set",
    operation: "union",
    keepsAll: true,
    branches: [EMPTY, EMPTY],
    names: [],
    notLocal: undefined,
    isRecursive: false,
  };
  return {
    tables: [],
    refusals,
    warnings: [],
    surroundings: facts.surroundings,
    restrictedTo: restricter(facts, positions, nothing, new QueryReader(facts, new Map())),
  };
}

const EMPTY: QueryBlock = {
  kind: "select",
  outputs: [],
  from: undefined,
  where: NO_CONDITION,
  sublinks: [],
  partitions: [],
  isDistinct: false,
  grouping: undefined,
  isOneGroup: false,
  notLocal: undefined,
};

/** A table whose changes cannot be followed, and what may be said about it instead. */
interface RefusedTable {
  readonly why: string;
  /** Not said where what was said under `follow.tables` is wrong. */
  readonly wayOut?: string;
  /** The place of the table that it is about. */
  readonly leaf?: FromLeaf | undefined;
}

function refusalOf(relation: RelationFacts, { why, wayOut }: RefusedTable): FollowRefusal {
  return { table: relationName(relation), message: why, wayOut: wayOut ?? CORRECT };
}

interface PlannedTables {
  readonly tables: readonly FollowedTable[];
  readonly refusals: readonly FollowRefusal[];
  readonly known: readonly RelationFacts[];
}

/** What a change of a table means, before it is known which columns its images need. */
type Followed =
  | { readonly kind: "ways"; readonly ways: readonly Way[] }
  | { readonly kind: "columns"; readonly columns: readonly string[] }
  | { readonly kind: "explicit"; readonly keys: ExplicitKeys }
  | { readonly kind: "everything" | "ignore" };

class TablePlanner {
  readonly #positions: readonly number[];
  readonly #key: readonly FactColumn[];
  readonly #places = new Map<RelationFacts, TablePlace[]>();
  readonly #reader: QueryReader;
  readonly #tables: FollowTables;
  readonly #followed = new Map<RelationFacts, Followed>();
  readonly #budget: WorkBudget;
  readonly #facts: QueryFacts;

  constructor(
    facts: QueryFacts,
    positions: readonly number[],
    block: QueryBlock,
    reader: QueryReader,
    tables: FollowTables,
    budget: WorkBudget,
  ) {
    this.#budget = budget;
    this.#facts = facts;
    this.#positions = positions;
    this.#key = positions.flatMap((position) => facts.columns[position] ?? []);
    this.#reader = reader;
    this.#tables = tables;
    for (const place of placesIn(block, false)) {
      if (place.leaf.kind !== "table") continue;
      const { relation } = place.leaf;
      this.#places.set(relation, [...(this.#places.get(relation) ?? []), place]);
    }
  }

  async plan(): Promise<PlannedTables> {
    const refused: [RelationFacts, RefusedTable][] = [];
    for (const [relation, places] of this.#places) {
      const change = await this.#change(relation, places);
      if ("why" in change) refused.push([relation, change]);
      else this.#followed.set(relation, change);
    }
    const columns = this.#budget.take(() => this.#imageColumns());
    for (const [relation, names] of columns) {
      const why = whyWithoutImages(relation, names);
      if (why !== undefined) refused.push([relation, { why, wayOut: STORED_OR_EVERYTHING, ...this.#first(relation) }]);
    }
    const tables = [...this.#followed].map(([relation, change]) => ({
      schema: relation.schema,
      name: relation.name,
      imageColumns: relation.columns
        .filter(({ name }) => columns.get(relation)?.has(name) === true)
        .map(({ name, type }) => ({ name, type })),
      readColumns: this.#reader.columnsRead(relation),
      change: this.#written(relation, change),
    }));
    return { tables, refusals: await this.#refusals(refused), known: [...this.#places.keys()] };
  }

  /** What was said of a table under `follow.tables` has its place there. */
  async #refusals(refused: readonly [RelationFacts, RefusedTable][]): Promise<readonly FollowRefusal[]> {
    if (refused.length === 0) return [];
    const placeOf = await ownPlaces(this.#facts);
    return refused.map(([relation, { leaf, ...why }]) => {
      const [declared] = choicesOf(relation, this.#tables);
      if (declared !== undefined) return { ...refusalOf(relation, why), table: declared };
      return { ...refusalOf(relation, why), place: leaf?.kind === "table" ? placeOf(leaf) : undefined };
    });
  }

  #first(relation: RelationFacts): Pick<RefusedTable, "leaf"> {
    return { leaf: this.#places.get(relation)?.[0]?.leaf };
  }

  async #change(relation: RelationFacts, places: readonly TablePlace[]): Promise<Followed | RefusedTable> {
    const [declared = ""] = choicesOf(relation, this.#tables);
    const choice = this.#tables[declared];
    if (choice !== undefined && "on_change" in choice && choice.on_change === "ignore") return { kind: "ignore" };
    const unseen = whyUnseen(relation);
    if (unseen !== undefined) return { why: unseen, wayOut: IGNORE, ...this.#first(relation) };
    if (this.#reader.sampled.has(relation)) {
      return { why: sampled(relation), wayOut: ANOTHER_QUERY, ...this.#first(relation) };
    }
    if (choice !== undefined) return this.#chosen(relation, choice);
    const ways: Way[] = [];
    for (const place of places) {
      const found = this.#budget.take(() => keyWays(place, this.#positions, this.#key));
      // Others are served by the same thread.
      await setImmediate();
      if ("why" in found) return { why: found.why, wayOut: EVERYTHING_OR_KEYS, leaf: place.leaf };
      ways.push(...found);
    }
    return { kind: "ways", ways };
  }

  async #chosen(relation: RelationFacts, choice: FollowedTableChoice): Promise<Followed | RefusedTable> {
    if ("on_change" in choice) return { kind: "everything" };
    if ("key_columns" in choice) return this.#chosenColumns(relation, choice.key_columns);
    const keys = await readExplicitKeys(choice.keys, relation, [...this.#places.keys()], this.#key);
    return "why" in keys ? keys : { kind: "explicit", keys };
  }

  #chosenColumns(relation: RelationFacts, columns: readonly string[]): Followed | RefusedTable {
    const missing = columns.filter((name) => !relation.columns.some((column) => column.name === name));
    const label = tableLabel(relation);
    if (missing.length > 0) return { why: `${label} has no column ${missing.map((name) => shown(name)).join(", ")}.` };
    if (columns.length === this.#key.length) return { kind: "columns", columns };
    return { why: `\`key_columns\` of ${label} are to be ${this.#key.length}, one for each column of the key.` };
  }

  /** Written once only to see which columns are used. */
  #imageColumns(): ReadonlyMap<RelationFacts, ReadonlySet<string>> {
    const columns = new Map<RelationFacts, Set<string>>();
    const note = (relation: RelationFacts, names: Iterable<string>): void => {
      columns.set(relation, new Set([...(columns.get(relation) ?? []), ...names]));
    };
    for (const [relation, change] of this.#followed) {
      if (change.kind === "columns") note(relation, change.columns);
      if (change.kind === "explicit") for (const [table, names] of change.keys.imageColumns) note(table, names);
      if (change.kind !== "ways") continue;
      const writer = this.#writer(() => ({ changed: "", old: "" }));
      for (const way of change.ways) writer.keys(way, this.#key);
      for (const [table, names] of writer.imageColumns) note(table, names);
    }
    return columns;
  }

  /**
   * When any change of a table compares the whole mart, its old rows are not needed by the others. Of one whose changes
   * nobody sees, and that a person ignores, there are none.
   */
  #writer(images: ImagesOf): StatementWriter {
    return new StatementWriter(
      images,
      (relation) => this.#followed.get(relation)?.kind === "everything" || whyUnseen(relation) !== undefined,
    );
  }

  #written(relation: RelationFacts, change: Followed): TableChange {
    switch (change.kind) {
      case "ways":
        return { kind: "keys", statement: (images) => this.#statement(change.ways, images) };
      case "columns":
        return { kind: "keys", statement: (images) => this.#ofColumns(images(relation).changed, change.columns) };
      case "explicit":
        return { kind: "keys", statement: (images) => change.keys.statement(images) };
      default:
        return { kind: change.kind };
    }
  }

  #ofColumns(changed: string, columns: readonly string[]): string {
    const own = columns.map((name) => `c.${quoteIdentifier(name)}`);
    const list = this.#key.map((column, index) => keyValue(own[index] ?? "NULL", column));
    return `SELECT DISTINCT ${list.join(", ")} FROM ${changed} AS c`;
  }

  #statement(ways: readonly Way[], images: ImagesOf): string {
    const writer = this.#writer(images);
    const selects = new Set(ways.map((way) => writer.keys(way, this.#key)));
    const [first = "", ...others] = selects;
    return others.length === 0 ? first.replace("SELECT ", "SELECT DISTINCT ") : [first, ...others].join("\nUNION\n");
  }
}

/** What stands for it in `follow.tables`: each of its two names may be quoted as in SQL. */
function choicesOf({ schema, name }: RelationFacts, tables: FollowTables): readonly string[] {
  const [schemas, names] = [schema, name].map((one) => [one, quoteIdentifier(one)]);
  const spellings = schemas?.flatMap((one) => names?.map((other) => `${one}.${other}`));
  return Object.keys(tables).filter((written) => spellings?.includes(written));
}

/** Names that the query does not know, and tables that are named twice. */
function refusedChoices(tables: FollowTables, known: readonly RelationFacts[]): readonly FollowRefusal[] {
  const choices = known.map((relation) => choicesOf(relation, tables));
  const labels = known.map(tableLabel).sort().join(", ");
  const unknown = Object.keys(tables).filter((written) => !choices.flat().includes(written));
  return [
    ...unknown.map((written) => ({
      table: written,
      message: `The query does not read the table ${written} of \`follow.tables\`. It reads ${labels === "" ? "none" : labels}.`,
      wayOut: CORRECT,
    })),
    ...choices.flatMap(([first = "", second]) =>
      second === undefined
        ? []
        : [
            {
              table: second,
              message: `\`follow.tables\` names one table twice, as ${first} and as ${second}.`,
              wayOut: CORRECT,
            },
          ],
    ),
  ];
}

function whyWithoutImages(relation: RelationFacts, names: ReadonlySet<string>): string | undefined {
  const [virtual] = relation.columns.filter(({ name, isVirtual }) => isVirtual && names.has(name));
  if (virtual === undefined) return undefined;
  const what = `The way to the key needs ${shown(virtual.name)} of ${tableLabel(relation)}, which is computed when it is read`;
  return `${what}: no record of a change has it.`;
}

/** Why no change of it can be seen: only a person can say that it does not matter. */
function whyUnseen(relation: RelationFacts): string | undefined {
  const label = tableLabel(relation);
  if (relation.kind === "m") return `${label} is a materialized view: nobody tells when it is refreshed.`;
  if (relation.kind === "f") return `${label} is, or has, a foreign table: nobody tells when it changes.`;
  if (relation.kind === "S") return `${label} is a sequence: nobody tells when it goes on.`;
  if (relation.hasRowSecurity) {
    return `${label} has row-level security: which rows are seen changes without any of them changing.`;
  }
  if (!relation.isUnlogged) return undefined;
  return `${label} is unlogged: after a crash of the server it is empty, and nobody tells.`;
}

function sampled(relation: RelationFacts): string {
  return `TABLESAMPLE takes other rows of ${tableLabel(relation)} every time.`;
}
