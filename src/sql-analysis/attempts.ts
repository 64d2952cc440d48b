import { type Choice, conditionsOf, type Equality, type Partition } from "./model.ts";
import type { TablePlace } from "./places.ts";

/** What may be taken to hold while ways are searched. */

export interface Attempt {
  readonly steps: Steps;
  /** A part of an OR that holds. */
  readonly part: readonly Equality[];
}

/** By which of its partitions the SELECT of a link is left; undefined: only by columns that all of them hold. */
type Steps = readonly (Partition | undefined)[];

/** Lists of attempts: the ways of all attempts of one list are needed, and any list will do. One by one: there may be millions. */
export function* attempts(place: TablePlace): Generator<readonly Attempt[]> {
  const choices: readonly Choice[] = [[[]], ...choicesIn(place)];
  for (const some of choicesOfSteps(place)) {
    for (const choice of choices) yield some.flatMap((steps) => choice.map((part) => ({ steps, part })));
  }
}

/** One OR at a time; what the others say is not needed. */
function choicesIn({ links }: TablePlace): readonly Choice[] {
  return links
    .flatMap(({ block }) => [block.where, ...conditionsOf(block.from)])
    .flatMap(({ choices }) => choices)
    .filter(({ length }) => length <= MOST_WAYS_OF_A_CHOICE);
}

/** More would take long to try, and nobody writes a query that needs them. */
const MOST_LINKS_WITH_STEPS = 2;
const MOST_WAYS_OF_A_CHOICE = 16;

/**
 * First without any steps; then with steps at one of the links that have partitions; then at two. A choice has one
 * entry for each combination of the windows (or the DISTINCT ON) of its links: all of them are needed.
 */
function choicesOfSteps({ links }: TablePlace): readonly (readonly Steps[])[] {
  const partitioned = links.flatMap(({ block }, index) => (block.partitions.length > 0 ? [index] : []));
  let chosen: readonly (readonly number[])[] = [[]];
  const all = [...chosen];
  for (let count = 0; count < MOST_LINKS_WITH_STEPS; count += 1) {
    chosen = chosen.flatMap((some) =>
      partitioned.filter((index) => index > (some.at(-1) ?? -1)).map((index) => [...some, index]),
    );
    all.push(...chosen);
  }
  return all.map((some) => stepsAt(some, links)).filter((choice) => choice.length <= MOST_WAYS_OF_A_CHOICE);
}

function stepsAt(chosen: readonly number[], links: TablePlace["links"]): readonly Steps[] {
  let all: readonly Steps[] = [[]];
  for (const [index, { block }] of links.entries()) {
    const partitions = chosen.includes(index) ? block.partitions : [undefined];
    all = all.flatMap((steps) => partitions.map((partition) => [...steps, partition]));
    if (all.length > MOST_WAYS_OF_A_CHOICE) return all;
  }
  return all;
}
