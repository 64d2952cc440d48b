import { type Attempt, attempts } from "./attempts.ts";
import { type Connected, connect } from "./connect.ts";
import {
  type ColumnUse,
  columnExpression,
  columnsIn,
  type Equality,
  type Expression,
  type FromLeaf,
  type InnerNode,
  isSameExpression,
  leavesOf,
  type Partition,
  type QueryLeaf,
  type SelectBlock,
  soleColumn,
} from "./model.ts";
import { neighbours, outputColumn, partitionColumn } from "./neighbours.ts";
import { Level } from "./outer-joins.ts";
import { isLeaf, type PlaceLink, type TablePlace } from "./places.ts";
import { canBeRead, canProvide } from "./rows-of-query.ts";
import {
  CONVERTED,
  DISTINCT_ON,
  globalWindow,
  MIXED_TYPES,
  ONLY_EQUAL,
  optionalPartition,
  ownEquality,
  widerWindow,
} from "./sentences.ts";
import {
  asMergedWith,
  columnOfOwnEquality,
  isAlike,
  isConvertedInSteps,
  isTheSame,
  isTheSameInAll,
  typeOfColumn,
  typeOfOutput,
} from "./types.ts";
import { spend } from "./work.ts";

/**
 * Leads from a changed row of a table, at one place of it, to the values of the wanted columns.
 *
 * The claim: when the rows of the query with these values change because this row did, a tuple of the row and of rows
 * of other tables, each present or among the old images, makes it so; and every equality used here holds for that tuple.
 */
export interface Way extends Connected {
  /** In the order of the wanted columns. */
  readonly wanted: readonly Expression[];
}

/** The ways that together find everything, or why there are none. */
export function waysFrom(
  place: TablePlace,
  wanted: readonly number[],
): readonly Way[] | { readonly why: string | undefined } {
  let why: string | undefined;
  for (const tried of attempts(place)) {
    const ways = tried.map((attempt) => new Search(place, attempt).find(wanted));
    const failed = ways.find((way) => "why" in way);
    if (failed === undefined) return ways as Way[];
    // What stops the more patient choice says more.
    why = (failed as { why: string | undefined }).why ?? why;
  }
  return { why };
}

class Search {
  readonly #place: TablePlace;
  readonly #steps: Attempt["steps"];
  readonly #part: Attempt["part"];
  readonly #levels: readonly Level[];
  readonly #levelOf = new Map<FromLeaf, number>();
  /** The rows of a SELECT that share a partition with the changed one, by its link. */
  readonly #neighbours = new Map<number, QueryLeaf>();
  readonly #outputs = new Map<string, Expression | undefined>();
  #why: string | undefined;

  constructor(place: TablePlace, { steps, part }: Attempt) {
    this.#place = place;
    this.#steps = steps;
    this.#part = part;
    this.#levels = place.links.map(levelOf);
    for (const [index, level] of this.#levels.entries()) {
      for (const leaf of level.leaves) this.#levelOf.set(leaf, index);
    }
    for (const [index, partition] of steps.entries()) {
      const block = this.#levels[index]?.block;
      if (partition !== undefined && block !== undefined) this.#neighbours.set(index, neighbours(block, partition));
    }
  }

  find(wanted: readonly number[]): Way | { readonly why: string | undefined } {
    const { leaf, links } = this.#place;
    if (links.some(({ sets }) => sets.some(({ isRecursive }) => isRecursive)))
      return { why: links.flatMap(({ sets }) => sets).find((set) => set.isRecursive)?.notLocal };
    this.#findWhatMustBeThere();
    const goals = wanted.map((index) => this.#goal(links.length - 1, index));
    if (goals.includes(undefined)) return { why: this.#why };
    const equalities = this.#equalities();
    const connected = connect({
      start: leaf,
      equalities,
      goals: (goals as Expression[]).map((goal) => substitutes(goal, equalities)),
      dependsOn: (other) => this.#dependencies(other),
    });
    if (connected === undefined || !canBeRead(connected, connected.leaves.slice(1))) return { why: this.#why };
    const compared = connected.equalities.flatMap(({ left, right }) => [...columnsIn(left), ...columnsIn(right)]);
    const own = compared.map(columnOfOwnEquality).find((column) => column !== undefined);
    if (own !== undefined) return { why: ownEquality(own) };
    return { ...connected, wanted: connected.reached };
  }

  /** Until nothing more follows: what must be there makes further conditions hold. */
  #findWhatMustBeThere(): void {
    let goesOn = true;
    while (goesOn) {
      goesOn = false;
      for (const [index, level] of this.#levels.entries()) {
        const inTests = this.#tests(index).flatMap((test) => soleColumn(test) ?? []);
        spend(level.size);
        const uses = level
          .conditions()
          .flatMap(({ condition, join }) =>
            condition.notNull.map((use) => ({ use, join: join as InnerNode | undefined })),
          );
        for (const { use, join } of [...uses, ...inTests.map((use) => ({ use, join: undefined }))]) {
          if (this.#forces(use, index, join)) goesOn = true;
        }
      }
    }
  }

  #forces({ leaf }: ColumnUse, index: number, join: InnerNode | undefined): boolean {
    const own = this.#levelOf.get(leaf);
    const level = own === undefined ? undefined : this.#levels[own];
    if (level === undefined || own === undefined || own < index) return false;
    if (own === index && level.mayDiffer(leaf, join)) return false;
    return level.mustBeThere(leaf);
  }

  #tests(index: number): readonly Expression[] {
    const via = this.#place.links[index]?.via;
    return via === undefined || isLeaf(via) ? [] : via.tests;
  }

  #equalities(): readonly Equality[] {
    const found: Equality[] = [];
    const note = (left: Expression | undefined, right: Expression | undefined, nullsMatch: boolean): void => {
      if (left !== undefined && right !== undefined) found.push({ left, right, nullsMatch });
    };
    for (const [index, level] of this.#levels.entries()) {
      for (const { condition, join } of level.conditions()) {
        const chosen = condition.choices.some((choice) => choice.includes(this.#part)) ? this.#part : [];
        for (const { left, right, nullsMatch } of [...condition.equalities, ...chosen]) {
          note(this.#resolve(left, index, join), this.#resolve(right, index, join), nullsMatch);
        }
      }
      for (const [position, test] of this.#tests(index).entries()) {
        note(this.#resolve(test, index, undefined), this.#compared(index - 1, position), false);
      }
    }
    for (const [index, leaf] of this.#neighbours) {
      const by = this.#steps[index]?.by ?? [];
      for (const [number, value] of by.entries()) {
        note(columnExpression(leaf, partitionColumn(number)), this.#resolve(value, index, undefined), true);
      }
    }
    return found;
  }

  /** A column of the SELECT of a link, as seen from outside: in terms of what is inside. */
  #output(index: number, position: number): Expression | undefined {
    const question = `${index} ${position}`;
    if (!this.#outputs.has(question)) this.#outputs.set(question, this.#findOutput(index, position));
    return this.#outputs.get(question);
  }

  /** By IN: what a branch of a set has is equal to the same values before it is converted and after, if nothing is lost. */
  #compared(index: number, position: number): Expression | undefined {
    const set = this.#place.links[index]?.sets.at(-1);
    const isMixed = set !== undefined && typeOfOutput(set, position) === undefined;
    return isMixed && isConvertedInSteps(set, position) ? this.#fail(MIXED_TYPES) : this.#output(index, position);
  }

  /** Each key is cast to the type of the query's column. */
  #goal(index: number, position: number): Expression | undefined {
    const sets = this.#place.links[index]?.sets ?? [];
    const outermost = sets.at(-1);
    const isInSteps = sets.length > 1 && outermost !== undefined && typeOfOutput(outermost, position) === undefined;
    if (isInSteps && isConvertedInSteps(outermost, position)) return this.#fail(MIXED_TYPES);
    return this.#output(index, position);
  }

  #findOutput(index: number, position: number): Expression | undefined {
    const link = this.#place.links[index];
    if (link === undefined) return undefined;
    const { block, sets } = link;
    const notLocal = [block, ...sets].find((one) => one.notLocal !== undefined)?.notLocal;
    if (notLocal !== undefined) return this.#fail(notLocal);
    const value = block.outputs[position]?.value;
    if (value === undefined) return undefined;
    const neighbour = this.#neighbours.get(index);
    if (neighbour !== undefined) return this.#outputOfNeighbours(index, position, neighbour);
    if (!isOneInGroup(value, block)) return this.#fail(ONLY_EQUAL);
    const resolved = this.#resolve(value, index, undefined);
    const wider = block.partitions.find((partition) => !isHeldBy(value, partition));
    if (resolved === undefined) return undefined;
    if (wider === undefined) return isTheSame(position, value, link) ? resolved : { ...resolved, isOnlyEqual: true };
    return this.#fail(wider.by.length === 0 ? globalWindow(wider.of) : widerWindow(wider.of));
  }

  /** In two steps: the partitions of the changed row, then the rows in them. */
  #outputOfNeighbours(index: number, position: number, neighbour: QueryLeaf): Expression | undefined {
    const [link, partition] = [this.#place.links[index], this.#steps[index]];
    const value = link?.block.outputs[position]?.value;
    if (link === undefined || value === undefined || partition === undefined) return undefined;
    const { block } = link;
    const { by, of, isDistinct } = partition;
    if (by.length === 0) return this.#fail(globalWindow(of));
    // DISTINCT ON chooses among rows that the windows have already changed: two steps after one another.
    if (block.partitions.some((other) => other.isDistinct !== isDistinct)) return this.#fail(widerWindow(DISTINCT_ON));
    if (!by.every((one) => isOneInGroup(one, block))) return this.#fail(ONLY_EQUAL);
    const isUnknown = by.some((one) => this.#resolve(one, index, undefined) === undefined);
    if (isUnknown) return this.#fail(optionalPartition(of));
    const column = outputColumn(position);
    if (!canProvide(neighbour, column)) return this.#fail(widerWindow(of));
    const found = columnExpression(neighbour, column);
    // The neighbours are all rows that may be meant, but not those of other partitions that are one with them.
    return isTheSameInAll(position, value, link) ? found : { ...found, isOnlyEqual: true };
  }

  #fail(why: string): undefined {
    this.#why ??= why;
    return undefined;
  }

  /** An expression that stands at a join of a SELECT (or above all of them), for the tuple that makes the change. */
  #resolve(expression: Expression, index: number, join: InnerNode | undefined): Expression | undefined {
    if (!expression.isPlain) {
      const isUnknown = expression.mayBeConverted === true && expression.either === undefined;
      return isUnknown ? this.#fail(CONVERTED) : undefined;
    }
    const parts: (string | ColumnUse)[] = [];
    let isOnlyEqual = expression.isOnlyEqual === true;
    for (const part of expression.parts) {
      const value = typeof part === "string" ? { parts: [part] } : this.#resolveColumn(part, index, join);
      if (value === undefined) return this.#resolveEither(expression, index, join);
      if ("isOnlyEqual" in value && value.isOnlyEqual === true) {
        if (expression.parts.length > 1) return this.#fail(ONLY_EQUAL);
        isOnlyEqual = true;
      }
      // A column that is a sum of a column with itself is twice as long at each level.
      spend(value.parts.length);
      for (const piece of value.parts) parts.push(piece);
    }
    return { parts, isPlain: true, isOnlyEqual };
  }

  #resolveColumn(use: ColumnUse, index: number, join: InnerNode | undefined): Expression | undefined {
    const own = this.#levelOf.get(use.leaf);
    const level = own === undefined ? undefined : this.#levels[own];
    if (own === undefined || level === undefined || own < index) return undefined;
    if (!level.isThere(use.leaf) || (own === index && level.mayDiffer(use.leaf, join))) return undefined;
    return this.#insideColumn(use, own);
  }

  #insideColumn(use: ColumnUse, own: number): Expression | undefined {
    const { leaf, column } = use;
    const itself: Expression = { parts: [use], isPlain: true };
    if (leaf === this.#place.leaf) return itself;
    if (leaf !== this.#levels[own]?.at) {
      return leaf.kind !== "query" || canProvide(leaf, column) ? itself : undefined;
    }
    const position = leaf.columns?.indexOf(column) ?? -1;
    const set = this.#place.links[own - 1]?.sets.at(-1);
    // What a branch has is converted to the type of the set, which is not known.
    if (set !== undefined && typeOfOutput(set, position) === undefined) return this.#fail(MIXED_TYPES);
    const value = this.#output(own - 1, position);
    return value === undefined || value.parts.length === 1 ? value : { ...value, parts: ["(", ...value.parts, ")"] };
  }

  /**
   * COALESCE of two columns that a FULL JOIN sets equal: whichever side the changed row is in, its column is the value,
   * whether the other side is there or not.
   */
  #resolveEither(expression: Expression, index: number, join: InnerNode | undefined): Expression | undefined {
    const level = this.#levels[index];
    if (expression.either === undefined || level?.at === undefined) return undefined;
    const [one, other] = expression.either;
    for (const full of level.fullJoins) {
      const isJoined = full.condition.equalities.some(
        ({ left, right, nullsMatch }) =>
          !nullsMatch &&
          ((isSameExpression(left, one) && isSameExpression(right, other)) ||
            (isSameExpression(left, other) && isSameExpression(right, one))),
      );
      if (!isJoined || !level.isThere(full) || level.mayDiffer(full, join)) continue;
      const side = [full.left, full.right].find((node) => leavesOf(node).includes(level.at as FromLeaf));
      const within = side === undefined ? [] : leavesOf(side);
      const isWithin = (value: Expression): boolean => columnsIn(value).every(({ leaf }) => within.includes(leaf));
      const [own, merged] = isWithin(one) ? [one, other] : [other, one];
      if (!isWithin(own) || columnsIn(own).length === 0) continue;
      const value = asMergedWith(merged, own, expression.mayBeConverted === true);
      const resolved = this.#resolve(value, index, full);
      return resolved === undefined || isAlike(one, other) ? resolved : { ...resolved, isOnlyEqual: true };
    }
    return undefined;
  }

  /** What must be bound before a function in FROM can be called; undefined: it cannot be. */
  #dependencies(leaf: FromLeaf): readonly FromLeaf[] | undefined {
    if (leaf.kind !== "function") return [];
    if (!leaf.call.isPlain || leaf.columns === undefined) return undefined;
    const needs = columnsIn(leaf.call).map((use) => use.leaf);
    const index = this.#levelOf.get(leaf);
    const isKnown = needs.every((need) => {
      const own = this.#levelOf.get(need);
      const level = own === undefined ? undefined : this.#levels[own];
      if (own === undefined || level === undefined || need.kind !== "table") return false;
      return level.isThere(need) && (own !== index || level.isReadWith(need, leaf));
    });
    return isKnown ? needs : undefined;
  }
}

function levelOf({ block, via }: PlaceLink): Level {
  if (isLeaf(via)) return new Level(block, via);
  const mayBeOfNoRow = block.isOneGroup || block.grouping?.hasSets === true;
  return new Level(block, undefined, !(via.isOfGroup && mayBeOfNoRow));
}

/** Rows that agree in the partition agree in the expression. */
function isHeldBy(value: Expression, { by }: Partition): boolean {
  if (by.some((one) => one.isPlain && isSameExpression(one, value))) return true;
  return columnsIn(value).every((use) => by.some((one) => isColumn(one, use)) && isEqualImage(use));
}

/**
 * All rows of a group give the same value. What is equal need not be the same: of 1.0 and 1.00, which are one group,
 * either may be printed.
 */
function isOneInGroup(value: Expression, { grouping }: SelectBlock): boolean {
  if (grouping === undefined || grouping.by.some((one) => one.isPlain && isSameExpression(one, value))) return true;
  const grouped = grouping.by.flatMap((one) => columnsIn(one));
  const isGrouped = (use: ColumnUse): boolean =>
    grouped.some((one) => one.leaf === use.leaf && one.column === use.column);
  // Of `(t::numeric)::text` in a group by `t::numeric` neither is t one, nor what is computed from it.
  const isOne = (use: ColumnUse): boolean => grouping.by.some((one) => isColumn(one, use)) && isEqualImage(use);
  return columnsIn(value).every((use) => !isGrouped(use) || isOne(use));
}

function isColumn(expression: Expression, { leaf, column }: ColumnUse): boolean {
  const sole = soleColumn(expression);
  return sole?.leaf === leaf && sole.column === column;
}

function isEqualImage(use: ColumnUse): boolean {
  return typeOfColumn(use)?.isEqualImage === true;
}

/** Columns that can stand for a wanted one: set equal to it, and with it byte by byte. */
function substitutes(goal: Expression, equalities: readonly Equality[]): readonly Expression[] {
  const found = [goal];
  for (const one of found) {
    spend(equalities.length);
    for (const { left, right, nullsMatch } of equalities) {
      if (nullsMatch) continue;
      const other = isSameExpression(left, one) ? right : isSameExpression(right, one) ? left : undefined;
      if (other === undefined || soleColumn(other) === undefined || !isAlike(goal, other)) continue;
      if (!found.some((known) => isSameExpression(known, other))) found.push(other);
    }
  }
  return found;
}
