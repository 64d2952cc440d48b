import { type Condition, type FromLeaf, type InnerNode, type JoinNode, leavesOf, type SelectBlock } from "./model.ts";
import { spend } from "./work.ts";

/** What outer joins allow to be known about the rows of a SELECT. */

/**
 * An outer join whose optional side must be there for the rows above it is none: a comparison with one of its columns,
 * above it, never holds for a row without it. (As PostgreSQL's planner sees it, too.) An inner join inside the
 * optional side says nothing of the kind.
 */
export function withoutNeedlessOuterJoins(node: JoinNode, needed: ReadonlySet<FromLeaf>): JoinNode {
  if (node.kind === "leaf") return node;
  const type = typeWith(node, needed);
  const { left, right } = type.isTurned ? { left: node.right, right: node.left } : node;
  const here = new Set([...needed, ...node.condition.notNull.map(({ leaf }) => leaf)]);
  const [ofLeft, ofRight] = { inner: [here, here], left: [needed, here], full: [NONE, NONE] }[type.type] as [
    ReadonlySet<FromLeaf>,
    ReadonlySet<FromLeaf>,
  ];
  return {
    ...node,
    type: type.type,
    left: withoutNeedlessOuterJoins(left, ofLeft),
    right: withoutNeedlessOuterJoins(right, ofRight),
  };
}

const NONE: ReadonlySet<FromLeaf> = new Set();

function typeWith(node: InnerNode, needed: ReadonlySet<FromLeaf>): { type: InnerNode["type"]; isTurned: boolean } {
  const isNeeded = (side: JoinNode): boolean => leavesOf(side).some((leaf) => needed.has(leaf));
  const [left, right] = [isNeeded(node.left), isNeeded(node.right)];
  if (node.type === "left") return { type: right ? "inner" : "left", isTurned: false };
  if (node.type === "inner" || (left && right)) return { type: "inner", isTurned: false };
  return left || right ? { type: "left", isTurned: right } : { type: "full", isTurned: false };
}

/** Of the joins inside optional sides: where such a one does not hold, the side is empty, and the row still there. */
export function conditionsOfOptionalSides(node: JoinNode | undefined, isOptional = false): ReadonlySet<Condition> {
  if (node === undefined || node.kind === "leaf") return new Set();
  const [left, right] = { inner: [false, false], left: [false, true], full: [true, true] }[node.type];
  return new Set([
    ...(isOptional ? [node.condition] : []),
    ...conditionsOfOptionalSides(node.left, isOptional || left),
    ...conditionsOfOptionalSides(node.right, isOptional || right),
  ]);
}

type OptionalSide = { readonly join: InnerNode; readonly side: JoinNode };

/**
 * One SELECT, seen from a changed row in it: at a leaf, or in one of its subqueries (`at` is then undefined).
 *
 * Beside the row of the result that changes, which may be without the optional sides, stands the tuple that makes it
 * change: the changed row, with the rows that it joins. The two are the same except in the optional sides that the
 * changed row is in.
 */
export class Level {
  readonly block: SelectBlock;
  readonly at: FromLeaf | undefined;
  /** Not where a subquery of a group changes that may have been made of no rows: then nothing holds. */
  readonly #hasTuple: boolean;
  readonly #above = new Map<JoinNode | FromLeaf, readonly OptionalSide[]>();
  readonly #joins: InnerNode[] = [];
  readonly #there = new Set<FromLeaf>();

  constructor(block: SelectBlock, at: FromLeaf | undefined, hasTuple = true) {
    this.block = block;
    this.at = at;
    this.#hasTuple = hasTuple;
    if (at !== undefined) this.#there.add(at);
    if (block.from !== undefined) this.#visit(block.from, []);
    spend(this.size);
  }

  /** Of the SELECT: how much there is to look at. */
  get size(): number {
    return (
      1 +
      this.leaves.length +
      sizeOf(this.block.where) +
      this.#joins.reduce((sum, one) => sum + sizeOf(one.condition), 0)
    );
  }

  get leaves(): readonly FromLeaf[] {
    return leavesOf(this.block.from);
  }

  /** Conditions that hold for the tuple, each with its join. */
  conditions(): readonly { readonly condition: Condition; readonly join: InnerNode | undefined }[] {
    if (!this.#hasTuple) return [];
    const joins = this.#joins.filter((join) => this.#holds(join));
    return [
      { condition: this.block.where, join: undefined },
      ...joins.map((join) => ({ condition: join.condition, join })),
    ];
  }

  get fullJoins(): readonly InnerNode[] {
    return this.#joins.filter(({ type }) => type === "full");
  }

  /** Because a comparison with it holds. */
  mustBeThere(leaf: FromLeaf): boolean {
    if (this.#there.has(leaf)) return false;
    this.#there.add(leaf);
    return true;
  }

  /** The tuple has a row of it. */
  isThere(leaf: FromLeaf | InnerNode): boolean {
    return this.#hasTuple && (this.#above.get(leaf) ?? []).every((optional) => this.#isEntered(optional.side));
  }

  /** Below this join (or anywhere) the row of the result may be without it, though the tuple has it. */
  mayDiffer(leaf: FromLeaf | InnerNode, below: InnerNode | undefined): boolean {
    if (this.at === undefined) return false;
    const { at } = this;
    const around = this.#above.get(leaf) ?? [];
    return around.some(
      ({ join, side }) => leavesOf(side).includes(at) && (below === undefined || isInside(join, below)),
    );
  }

  /** Whoever reads its row at the place of the other reads the row of the tuple. */
  isReadWith(leaf: FromLeaf, other: FromLeaf): boolean {
    const { at } = this;
    const around = this.#above.get(other) ?? [];
    return (this.#above.get(leaf) ?? []).every(
      ({ side }) => at === undefined || !leavesOf(side).includes(at) || around.some((one) => one.side === side),
    );
  }

  #visit(node: JoinNode, above: readonly OptionalSide[]): void {
    this.#above.set(node.kind === "leaf" ? node.leaf : node, above);
    if (node.kind === "leaf") return;
    this.#joins.push(node);
    const isOptional = { inner: [false, false], left: [false, true], full: [true, true] }[node.type];
    for (const [index, side] of [node.left, node.right].entries()) {
      this.#visit(side, isOptional[index] === true ? [...above, { join: node, side }] : above);
    }
  }

  #holds(join: InnerNode): boolean {
    if (!this.isThere(join)) return false;
    if (join.type === "inner") return true;
    return this.#isEntered(join.right) && (join.type === "left" || this.#isEntered(join.left));
  }

  #isEntered(side: JoinNode): boolean {
    return leavesOf(side).some((leaf) => this.#there.has(leaf));
  }
}

const sizeOf = ({ equalities, notNull, choices }: Condition): number =>
  1 + equalities.length + notNull.length + choices.length;

function isInside(join: InnerNode, outer: InnerNode): boolean {
  if (join === outer) return false;
  const isWithin = (node: JoinNode): boolean =>
    node === join || (node.kind === "join" && (isWithin(node.left) || isWithin(node.right)));
  return isWithin(outer);
}
