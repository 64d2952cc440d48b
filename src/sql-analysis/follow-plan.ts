import type { TextPlace } from "../domain/text-place.ts";

/**
 * What is derived from a query about the ways from its tables to the key of its mart. The types that the parts of
 * follow mode share; see `plan-follow.ts` for how a plan is made.
 */

import type { QuerySurroundings } from "./query-facts.ts";

/** A base table, or any other relation that stores rows. */
interface RelationName {
  readonly schema: string;
  readonly name: string;
}

/** A table whose changes a mart follows. */
export interface FollowedTable extends RelationName {
  /** The columns that an image of a changed row must hold: those on the ways to the key. */
  readonly imageColumns: readonly ImageColumn[];
  /** Every column of the table that the query reads: a change that touches none of them changes no mart. */
  readonly readColumns: readonly string[];
  readonly change: TableChange;
}

export interface ImageColumn {
  readonly name: string;
  /** As `format_type` prints it, with its schema where that is not pg_catalog. */
  readonly type: string;
}

export type TableChange =
  /**
   * One SELECT DISTINCT of the key columns, each in the type of the query's column. A null in one of them says that the
   * query may have a row without a key because of the change.
   */
  | { readonly kind: "keys"; statement(images: ImagesOf): string }
  | { readonly kind: "everything" }
  | { readonly kind: "ignore" };

/**
 * The recorded rows of a table in this round, as FROM items: parenthesised SELECTs that return `imageColumns` by name.
 * A table that has no image columns is never asked for.
 */
export type ImagesOf = (table: RelationName) => {
  /** Old and new images. */
  readonly changed: string;
  /** Old images only. */
  readonly old: string;
};

/** Why a query cannot be followed as it is. Nothing runs until it is answered. */
export interface FollowRefusal {
  /** `schema.table`, if it is about one. */
  readonly table: string | null;
  readonly message: string;
  /** What to do about it, as a sentence: for whoever tells of it to add. */
  readonly wayOut: string;
  /** Where the table stands in the query as it is written; undefined where that cannot be told, as inside a view. */
  readonly place?: TextPlace | undefined;
}

export interface FollowPlan {
  readonly tables: readonly FollowedTable[];
  readonly refusals: readonly FollowRefusal[];
  /** What a person should know: results that are not determined by the rows, for example. */
  readonly warnings: readonly string[];
  readonly surroundings: QuerySurroundings;
  /**
   * The query for these keys alone, restricted inside as far as that is sound, and outside in any case. `keys` are texts
   * that can be cast to the types of the key columns. Columns and their order are those of the query.
   */
  restrictedTo(keys: readonly (readonly string[])[]): string;
}
