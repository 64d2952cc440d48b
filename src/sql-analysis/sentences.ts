import { shown } from "../sql-guard/refusal.ts";
import type { FromLeaf, TableLeaf } from "./model.ts";
import type { FactColumn, RelationFacts } from "./query-facts.ts";

/** Why a change cannot be led to its keys, in the words that a person reads. */

export const LIMITED = "The LIMIT chooses among all rows: a change of one row moves others in or out.";
export const GROUPING_SETS =
  "GROUPING SETS make totals over rows with other keys: a change of one row changes all of them.";
export const RECURSIVE = "The query is recursive: how far a change reaches is only known by running it.";

export const ONLY_EQUAL =
  "Something is computed from one of several values that are equal without being the same, as 1.0 and 1.00 are: of a group, DISTINCT, a window, a set operation or a FULL JOIN.";
export const MIXED_TYPES =
  "A column of a set operation is used whose SELECTs have different types there, or types that the query does not say: cast them to one type.";
export const CONVERTED =
  "A column of USING is made of two types, or of types that the query does not say: cast both to one type.";

/** What a partition is called that is not a window's. */
export const DISTINCT_ON = "DISTINCT ON";

/** Ways out, for whoever tells of a refusal. */
export const EVERYTHING_OR_KEYS = "Say under follow.tables how its changes find their keys, or on_change: everything.";
export const STORED_OR_EVERYTHING =
  "Have the owner of the source make it a stored column, or say on_change: everything under follow.tables.";
export const TOO_MUCH_WORK =
  "The query has too many tables, conditions and levels at once for the ways to its key to be found.";
export const ANOTHER_QUERY = "Write the query otherwise, or use mode full.";
export const CORRECT = "Correct follow.tables.";
export const IGNORE = "Say on_change: ignore under follow.tables if the sweep is enough.";

export function tableLabel({ schema, name }: Pick<RelationFacts, "schema" | "name">): string {
  return shown(schema, name);
}

function placeLabel({ relation, alias }: TableLeaf): string {
  const label = tableLabel(relation);
  return alias === relation.name ? label : `${label} (${shown(alias)})`;
}

function leafLabel(leaf: FromLeaf): string {
  if (leaf.kind === "table") return placeLabel(leaf);
  return leaf.kind === "query" && leaf.view !== undefined ? tableLabel(leaf.view) : shown(leaf.alias);
}

export const noWay = (leaf: TableLeaf, key: string): string =>
  `No equality leads from ${placeLabel(leaf)} to the key ${shown(key)}.`;

export const optionalKey = (key: string, leaf: FromLeaf): string =>
  `The key ${shown(key)} comes from ${leafLabel(leaf)}, which is on the optional side of an outer join: rows without it have no key.`;

export const computedKey = (key: string, by: string): string =>
  `The key ${shown(key)} is computed by ${by}: it changes with the rows it is computed from.`;

export const unreadableKey = (key: string): string =>
  `The key ${shown(key)} is computed in a way that cannot be followed.`;

export const widerWindow = (of: string): string =>
  of === DISTINCT_ON
    ? "DISTINCT ON chooses among rows with other keys: its columns do not hold the key."
    : `${of.slice(0, 1).toUpperCase()}${of.slice(1)} looks at rows with other keys: PARTITION BY does not hold the key.`;

export const optionalPartition = (of: string): string =>
  `${of.slice(0, 1).toUpperCase()}${of.slice(1)} goes by a column that is computed, or from the optional side of an outer join: which rows it looks at cannot be told from tables.`;

export const globalWindow = (of: string): string =>
  `${of.slice(0, 1).toUpperCase()}${of.slice(1)} looks at all rows: a change of one row changes others.`;

export const independentSubquery = (relation: RelationFacts): string =>
  `The subquery over ${tableLabel(relation)} does not depend on the row: every change of it changes all rows.`;

export const notIn = (relation: RelationFacts): string =>
  `NOT IN over ${tableLabel(relation)}: one NULL changes the answer of every row. Write NOT EXISTS.`;

export const inAsValue = (relation: RelationFacts): string =>
  `IN over ${tableLabel(relation)} is used as a value: one NULL changes the answer of every row. Write EXISTS.`;

export const misplacedSubquery = (relation: RelationFacts): string =>
  `The subquery over ${tableLabel(relation)} stands in the ON of an outer join, or of a join on its optional side, or in a call in FROM, where its rows cannot be told apart.`;

export const ownEquality = ({ name, type, ownEquality: by }: FactColumn): string =>
  by === "type"
    ? `The way to the key compares ${shown(name)}, of the type ${type}, whose values are compared in a way of its own.`
    : `The way to the key compares ${shown(name)}, which has a collation in which different texts are equal.`;
