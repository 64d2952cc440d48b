import { columnsIn, type OutputExpression, type SelectBlock } from "./model.ts";
import { Level } from "./outer-joins.ts";
import { isLeaf, type PlaceLink, type TablePlace } from "./places.ts";
import type { FactColumn, RelationFacts } from "./query-facts.ts";
import {
  computedKey,
  inAsValue,
  independentSubquery,
  misplacedSubquery,
  notIn,
  noWay,
  optionalKey,
  unreadableKey,
} from "./sentences.ts";
import { type Way, waysFrom } from "./ways.ts";

/** The ways from a place of a table to the key, or the sentence that says why there are none. */
export function keyWays(
  place: TablePlace,
  positions: readonly number[],
  key: readonly FactColumn[],
): readonly Way[] | { readonly why: string } {
  const { leaf, links } = place;
  if (leaf.kind !== "table") return { why: "" };
  const misplaced = links.some(({ via }) => !isLeaf(via) && via.isMisplaced);
  if (misplaced) return { why: misplacedSubquery(leaf.relation) };
  const outermost = links.at(-1)?.block;
  const why = outermost === undefined ? undefined : whyNoKey(outermost, positions, key);
  if (why !== undefined) return { why };
  const ways = waysFrom(place, positions);
  if (!("why" in ways)) return ways;
  return {
    why: ways.why ?? whyOfSubquery(links, leaf.relation) ?? noWay(leaf, key.map(({ name }) => name).join(", ")),
  };
}

/** What makes a column no key, whichever table changes. */
function whyNoKey(block: SelectBlock, positions: readonly number[], key: readonly FactColumn[]): string | undefined {
  for (const [index, position] of positions.entries()) {
    const name = key[index]?.name ?? "";
    const output = block.outputs[position];
    const why = output === undefined ? unreadableKey(name) : whyNotPlain(output, name, block);
    if (why !== undefined) return why;
  }
  return undefined;
}

function whyNotPlain({ value, computedBy }: OutputExpression, name: string, block: SelectBlock): string | undefined {
  if (!value.isPlain) return computedBy === undefined ? unreadableKey(name) : computedKey(name, computedBy);
  const level = new Level(block, undefined);
  const optional = columnsIn(value).find(({ leaf }) => !level.isThere(leaf));
  // A column that a FULL JOIN merges is on an optional side either way.
  if (optional === undefined || (value.either !== undefined && level.fullJoins.length > 0)) return undefined;
  return optionalKey(name, optional.leaf);
}

function whyOfSubquery(links: readonly PlaceLink[], relation: RelationFacts): string | undefined {
  const sublink = links.flatMap(({ via }) => (isLeaf(via) ? [] : [via])).at(-1);
  if (sublink === undefined) return undefined;
  if (sublink.every === "value") return inAsValue(relation);
  if (sublink.every === "not in") return notIn(relation);
  return sublink.dependsOnRow ? undefined : independentSubquery(relation);
}
