/** What the catalogue of the source says about a query: everything that its plan is derived from. */

export interface QueryFacts {
  /** As it is written. */
  readonly query: string;
  /** `pg_get_viewdef` of a view over the query, with nothing but pg_catalog on the search path. */
  readonly definition: string;
  readonly columns: readonly FactColumn[];
  /** Tables and views, also those that are reached through views. */
  readonly relations: readonly RelationFacts[];
  /** The names of all aggregates of the database, and of all functions that return sets. */
  readonly aggregates: readonly string[];
  readonly setReturning: readonly string[];
  /** Functions that the query calls, also through views and operators, and that may answer differently every time. */
  readonly volatile: readonly string[];
  /** Texts such as 'today', which became a date when the query was analysed, or may become one when it runs. */
  readonly timeTexts: readonly string[];
  /** Types of times that texts are cast to when the query runs. */
  readonly timesFromTexts: readonly string[];
  /** Somewhere in it a value is converted without a cast in a way that loses something, such as digits: to a real. */
  readonly losesByConversion: boolean;
  /** `schema.name` of the types that are compared in a way of their own. */
  readonly typesOfOwnEquality: readonly string[];
  readonly surroundings: QuerySurroundings;
}

/** What the rows depend on besides tables and views, and nobody records. */
export interface QuerySurroundings {
  /** Oids of the types that its expressions, or those of its views, name, and that did not come with PostgreSQL. */
  readonly types: readonly string[];
  /** It takes texts apart by a configuration of text search. */
  readonly usesTextSearch: boolean;
  /** Those that its functions heed, and that are left as the database has them. */
  readonly settings: readonly string[];
  /** What all that was like when the definition was read. */
  readonly prints: Readonly<Record<string, string>>;
}

export const NO_SURROUNDINGS: QuerySurroundings = { types: [], usesTextSearch: false, settings: [], prints: {} };

export interface FactColumn {
  readonly name: string;
  /** As `format_type` prints it. */
  readonly type: string;
  /** Values that are equal are the same bytes: they can stand for one another. */
  readonly isEqualImage: boolean;
  /** It has another collation than the database's: one in which different texts may be equal, for example. */
  readonly hasOwnCollation: boolean;
  /** Computed when it is read: no recorded row has it. */
  readonly isVirtual: boolean;
  /** What `=` means outside the query is something else: by its type, as citext, or by a non-deterministic collation. */
  readonly ownEquality: "type" | "collation" | null;
}

export interface RelationFacts {
  readonly schema: string;
  readonly name: string;
  /** Of `pg_class`: table, partitioned table, view, materialized view, foreign table, sequence. */
  readonly kind: "r" | "p" | "v" | "m" | "f" | "S";
  readonly columns: readonly FactColumn[];
  /** Of a view. */
  readonly definition: string | null;
  readonly hasRowSecurity: boolean;
  readonly isUnlogged: boolean;
}
