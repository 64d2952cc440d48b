/** What the parts of a run pass along: source → code tasks → sink. */

export interface Column {
  readonly name: string;
  /** The type as SQL writes it, with its modifier: `numeric(3,1)`. */
  readonly type: string;
  /** Only where the type is the source's own (an enum, a domain): the built-in type that holds the same values. */
  readonly plainType?: string;
}

/** The exact texts of PostgreSQL in the order of the columns, or null. */
export type Row = readonly (string | null)[];
