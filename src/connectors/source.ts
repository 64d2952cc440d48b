import type { ScanPosition } from "../domain/checkpoint.ts";

/**
 * Where rows come from.
 *
 * Contract. A source never writes. Values are the exact texts of the source database, or null. Rows come ordered by
 * the columns of `orderBy`; reading again `after` a position gives every row behind it and none before it.
 */
export interface Source {
  /** The columns the query returns; throws a sentence a person understands when the query cannot run. */
  describe(query: string): Promise<readonly Column[]>;
  open(request: ReadRequest): Promise<SourceReader>;
}

export interface Column {
  readonly name: string;
  /** The type as SQL writes it, with its modifier: `numeric(3,1)`. */
  readonly type: string;
}

export interface ReadRequest {
  readonly query: string;
  readonly columns: readonly Column[];
  readonly orderBy: readonly string[];
  readonly after: ScanPosition | null;
}

export type Row = readonly (string | null)[];

export interface SourceReader {
  /** Up to `limit` rows in order; fewer only at the end. */
  read(limit: number): Promise<readonly Row[]>;
  close(): Promise<void>;
}
