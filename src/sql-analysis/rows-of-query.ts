import { type Connected, connect } from "./connect.ts";
import {
  columnsIn,
  type Expression,
  type FromLeaf,
  type QueryBlock,
  type QueryLeaf,
  type SelectBlock,
} from "./model.ts";
import { Level } from "./outer-joins.ts";
import { typeOfOutput } from "./types.ts";

/**
 * At least the rows that a query on the way has for some of its columns, now or before: read from the tables that
 * every row of it has, joined by equalities that hold for every row of it.
 */
export interface RowsSelect extends Connected {
  readonly outputs: readonly Expression[];
}

/** Asked for again and again: by each condition that names a column, and by each query around. */
const known = new WeakMap<QueryBlock, Map<string, readonly RowsSelect[] | undefined>>();

/** SELECTs whose rows, taken together, are those; undefined if these columns cannot be had that way. */
export function rowsOf(block: QueryBlock, positions: readonly number[]): readonly RowsSelect[] | undefined {
  const answers = known.get(block) ?? new Map<string, readonly RowsSelect[] | undefined>();
  known.set(block, answers);
  const question = positions.join();
  if (!answers.has(question)) answers.set(question, findRows(block, positions));
  return answers.get(question);
}

function findRows(block: QueryBlock, positions: readonly number[]): readonly RowsSelect[] | undefined {
  if (block.kind === "select") {
    const rows = rowsOfSelect(block, positions);
    return rows === undefined ? undefined : [rows];
  }
  if (block.isRecursive) return undefined;
  // A branch of another type gives other values; and INTERSECT may take a row from either side.
  const types = positions.map((position) => typeOfOutput(block, position));
  if (types.some((type) => type === undefined || (block.operation === "intersect" && !type.isEqualImage)))
    return undefined;
  const [left, right] = block.branches;
  const ofLeft = rowsOf(left, positions);
  if (block.operation !== "union" || ofLeft === undefined) return ofLeft;
  const ofRight = rowsOf(right, positions);
  return ofRight === undefined ? undefined : [...ofLeft, ...ofRight];
}

export function canProvide(leaf: QueryLeaf, column: string): boolean {
  const position = leaf.columns.indexOf(column);
  return position !== -1 && rowsOf(leaf.block, [position]) !== undefined;
}

/** Every query among these can give all of the columns that are used of it, together. */
export function canBeRead({ equalities, reached }: Connected, leaves: readonly FromLeaf[]): boolean {
  const uses = [...reached, ...equalities.flatMap(({ left, right }) => [left, right])].flatMap((one) => columnsIn(one));
  return leaves.every((leaf) => {
    if (leaf.kind !== "query") return true;
    const columns = new Set(uses.filter((use) => use.leaf === leaf).map(({ column }) => column));
    const positions = [...columns].map((column) => leaf.columns.indexOf(column));
    return rowsOf(leaf.block, positions) !== undefined;
  });
}

function rowsOfSelect(block: SelectBlock, positions: readonly number[]): RowsSelect | undefined {
  // Its rows also have nulls where the tables have none.
  if (block.grouping?.hasSets === true) return undefined;
  const level = new Level(block, undefined);
  const isThere = (expression: Expression): boolean =>
    expression.isPlain &&
    columnsIn(expression).every(
      ({ leaf, column }) =>
        level.leaves.includes(leaf) && level.isThere(leaf) && (leaf.kind !== "query" || canProvide(leaf, column)),
    );
  const outputs = positions.flatMap((position) => block.outputs[position]?.value ?? []);
  if (outputs.length < positions.length || !outputs.every(isThere)) return undefined;
  const start = outputs.flatMap((value) => columnsIn(value))[0]?.leaf;
  if (start === undefined) return { outputs, leaves: [], equalities: [], reached: outputs };
  const equalities = level
    .conditions()
    .flatMap(({ condition }) => condition.equalities)
    .filter(({ left, right }) => isThere(left) && isThere(right));
  const connected = connect({
    start,
    equalities,
    goals: outputs.map((value) => [value]),
    dependsOn: (leaf) => {
      if (leaf.kind !== "function") return [];
      const needs = columnsIn(leaf.call);
      const isCallable =
        leaf.columns !== undefined && isThere(leaf.call) && needs.every((use) => use.leaf.kind === "table");
      return isCallable ? needs.map((use) => use.leaf) : undefined;
    },
  });
  if (connected === undefined || !canBeRead({ ...connected, reached: outputs }, connected.leaves)) return undefined;
  return { ...connected, outputs };
}
