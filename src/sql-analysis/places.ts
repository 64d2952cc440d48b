import { type FromLeaf, leavesOf, type QueryBlock, type SelectBlock, type SetBlock, type Sublink } from "./model.ts";

/** A place of a table (or of a view that counts as one), and the SELECTs around it from the inside out. */
export interface TablePlace {
  readonly leaf: FromLeaf;
  readonly links: readonly PlaceLink[];
}

export interface PlaceLink {
  readonly block: SelectBlock;
  /** What of it contains the table: the table itself, a query in FROM, or a subquery in an expression. */
  readonly via: FromLeaf | Sublink;
  /** The set operations that the SELECT is a branch of, from the inside out. */
  readonly sets: readonly SetBlock[];
}

/** Of all tables, and of views where these count as tables. */
export function placesIn(block: QueryBlock, areViewsTables: boolean): readonly TablePlace[] {
  const inside = (inner: QueryBlock): readonly TablePlace[] => placesIn(inner, areViewsTables);
  if (block.kind === "set") {
    return block.branches.flatMap((branch) => inside(branch).map((place) => within(place, block)));
  }
  const inFrom = leavesOf(block.from).flatMap((leaf): readonly TablePlace[] => {
    if (leaf.kind === "function") return [];
    const isTable = leaf.kind === "table" || (areViewsTables && leaf.view !== undefined);
    if (isTable) return [{ leaf, links: [{ block, via: leaf, sets: [] }] }];
    return around(inside(leaf.block), block, leaf);
  });
  return [...inFrom, ...block.sublinks.flatMap((sublink) => around(inside(sublink.block), block, sublink))];
}

export function isLeaf(via: FromLeaf | Sublink): via is FromLeaf {
  return "kind" in via;
}

function around(places: readonly TablePlace[], block: SelectBlock, via: FromLeaf | Sublink): readonly TablePlace[] {
  return places.map(({ leaf, links }) => ({ leaf, links: [...links, { block, via, sets: [] }] }));
}

function within({ leaf, links }: TablePlace, set: SetBlock): TablePlace {
  return {
    leaf,
    links: links.map((link, index) => (index === links.length - 1 ? { ...link, sets: [...link.sets, set] } : link)),
  };
}
