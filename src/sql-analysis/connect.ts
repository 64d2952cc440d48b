import { columnsIn, type Equality, type Expression, type FromLeaf } from "./model.ts";
import { spend } from "./work.ts";

/** Finds the fewest relations that lead from one to others along equalities. */

export interface Connection {
  readonly start: FromLeaf;
  readonly equalities: readonly Equality[];
  /** For each goal the expressions that will do. */
  readonly goals: readonly (readonly Expression[])[];
  /** The relations without which this one has no rows (a function's arguments); undefined: it cannot be used. */
  dependsOn(leaf: FromLeaf): readonly FromLeaf[] | undefined;
}

export interface Connected {
  /** Beginning with the start; a function follows what it depends on. */
  readonly leaves: readonly FromLeaf[];
  /** All that are between them. */
  readonly equalities: readonly Equality[];
  /** One expression for each goal. */
  readonly reached: readonly Expression[];
}

export function connect(connection: Connection): Connected | undefined {
  const bound = new Set([connection.start]);
  const reached: Expression[] = [];
  for (const goal of connection.goals) {
    const found = nearest(goal, bound, connection);
    if (found === undefined) return undefined;
    reached.push(found.expression);
    for (const leaf of found.leaves) bound.add(leaf);
  }
  const equalities = connection.equalities.filter((equality) => {
    const leaves = leavesIn(equality);
    return leaves.size > 1 && [...leaves].every((leaf) => bound.has(leaf));
  });
  const order = inOrder([...bound], connection);
  return order === undefined ? undefined : { leaves: order, equalities, reached };
}

/** In rounds: what can be reached by one more relation, together with what that takes. */
function nearest(
  goal: readonly Expression[],
  bound: ReadonlySet<FromLeaf>,
  connection: Connection,
): { expression: Expression; leaves: readonly FromLeaf[] } | undefined {
  const ways = new Map<FromLeaf, readonly FromLeaf[]>([...bound].map((leaf) => [leaf, []]));
  for (;;) {
    const expression = goal.find((one) => columnsIn(one).every(({ leaf }) => ways.has(leaf)));
    if (expression !== undefined) {
      return { expression, leaves: columnsIn(expression).flatMap(({ leaf }) => ways.get(leaf) ?? []) };
    }
    const further = oneFurther(ways, connection);
    const next = further.size > 0 ? further : withoutArguments(goal, ways, connection);
    if (next.size === 0) return undefined;
    for (const [leaf, way] of next) ways.set(leaf, way);
  }
}

function oneFurther(
  ways: ReadonlyMap<FromLeaf, readonly FromLeaf[]>,
  connection: Connection,
): ReadonlyMap<FromLeaf, readonly FromLeaf[]> {
  const further = new Map<FromLeaf, readonly FromLeaf[]>();
  const offer = (leaf: FromLeaf, from: readonly FromLeaf[]): void => {
    const way = [...new Set([...from.flatMap((one) => [...(ways.get(one) ?? []), one]), leaf])];
    spend(way.length);
    const known = further.get(leaf);
    if (!ways.has(leaf) && (known === undefined || known.length > way.length)) further.set(leaf, way);
  };
  spend(connection.equalities.length + ways.size);
  for (const equality of connection.equalities) {
    const leaves = [...leavesIn(equality)];
    const [missing, another] = leaves.filter((leaf) => !ways.has(leaf));
    if (missing === undefined || another !== undefined || leaves.length === 1) continue;
    const needs = connection.dependsOn(missing);
    if (needs !== undefined) offer(missing, [...leaves.filter((leaf) => leaf !== missing), ...needs]);
  }
  for (const leaf of calledFrom(ways, connection)) offer(leaf, connection.dependsOn(leaf) ?? []);
  return further;
}

/** As a last resort, because no equality picks any of their rows: series and lists that the goal mentions. All of them count. */
function withoutArguments(
  goal: readonly Expression[],
  ways: ReadonlyMap<FromLeaf, unknown>,
  connection: Connection,
): ReadonlyMap<FromLeaf, readonly FromLeaf[]> {
  const mentioned = goal.flatMap((one) => columnsIn(one).map(({ leaf }) => leaf));
  const free = mentioned.filter(
    (leaf) => leaf.kind === "function" && !ways.has(leaf) && connection.dependsOn(leaf)?.length === 0,
  );
  return new Map(free.map((leaf) => [leaf, [leaf]]));
}

/** Functions whose arguments are known: they need no equality. */
function calledFrom(ways: ReadonlyMap<FromLeaf, unknown>, connection: Connection): readonly FromLeaf[] {
  const mentioned = new Set(connection.goals.flat().flatMap((one) => columnsIn(one).map(({ leaf }) => leaf)));
  return [...mentioned].filter((leaf) => {
    if (leaf.kind !== "function" || ways.has(leaf)) return false;
    const needs = connection.dependsOn(leaf);
    return needs !== undefined && needs.length > 0 && needs.every((one) => ways.has(one));
  });
}

const leavesKnown = new WeakMap<Equality, ReadonlySet<FromLeaf>>();

function leavesIn(equality: Equality): ReadonlySet<FromLeaf> {
  const known = leavesKnown.get(equality);
  if (known !== undefined) return known;
  const { left, right } = equality;
  const leaves = new Set([...columnsIn(left), ...columnsIn(right)].map(({ leaf }) => leaf));
  leavesKnown.set(equality, leaves);
  return leaves;
}

/** What a function depends on comes along, and before it. */
function inOrder(leaves: readonly FromLeaf[], connection: Connection): readonly FromLeaf[] | undefined {
  const ordered: FromLeaf[] = [];
  const add = (leaf: FromLeaf): boolean => {
    if (ordered.includes(leaf)) return true;
    const needs = connection.dependsOn(leaf);
    if (needs === undefined || !needs.every(add)) return false;
    ordered.push(leaf);
    return true;
  };
  return leaves.every(add) ? ordered : undefined;
}
