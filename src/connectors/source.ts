import type { ScanPosition } from "../domain/checkpoint.ts";
import type { Column } from "../domain/row.ts";
import type { MarkedTable, SourceMark } from "../domain/source-mark.ts";
import type { CursorRules, EndOfLoad, Horizon, KnownNulls, NextStart } from "../domain/watermark.ts";
import type { ChangeWatch, Follower, FollowRequest } from "./follower.ts";
import type { SourceReader } from "./source-reader.ts";

/**
 * Where rows come from.
 *
 * Contract. A source never writes. Values are the exact texts of the source database, or null. Rows come ordered by
 * the columns of `orderBy`; reading again `after` a position gives every row after it and none before it.
 */
export interface Source {
  /**
   * The columns the query returns. Called before anything else is done with a query: throws QUERY_REFUSED if it does
   * what it may not, and an error a person understands if it cannot run.
   */
  examine(query: string): Promise<readonly Column[]>;
  /** The tables whose changes do not move the incremental key, so that no incremental load notices them. */
  unseenTables(query: string, key: string): Promise<readonly string[]>;
  open(request: ReadRequest): Promise<SourceReader>;
  /** True when a session that put this mark into its database is in the same database as the reader. */
  seesMark(mark: string): Promise<boolean>;

  /** Tells this source from another one, or from itself at an earlier moment; `key` is the incremental key. */
  takeMark(query: string, key: string): Promise<SourceMark>;
  /** True when one of these parts of a table has rows up to this value of the key, or when that is unknown. */
  partsReachBack(query: string, key: string, parts: readonly MarkedTable[], value: string): Promise<boolean>;

  /** Throws when the columns cannot serve as a cursor of this query. */
  requireUsableCursor(query: string, columns: readonly Column[], rules: CursorRules): Promise<KnownNulls>;
  /** True when it is proven that no two rows of the query have the same non-null values in these columns. */
  isUnique(query: string, columns: readonly string[]): Promise<boolean>;
  /** Taken before the first read of an incremental load: nothing older can still become visible. */
  takeHorizon(lookbackMs: number, key?: UnstampedKey): Promise<Horizon>;
  /** Where the next incremental load starts. Decided in the source, where the values can be compared. */
  nextStart(end: EndOfLoad): Promise<NextStart>;
  /** True when reading batch by batch, each by a statement of its own, costs about as much as reading all at once. */
  canSeek(request: ReadRequest, batchSize: number): Promise<boolean>;
  /** How many rows the planner expects the read to give; null if it can only guess. */
  estimateRows(request: ReadRequest): Promise<number | null>;
  /** Follows the changes of one query, which was examined; left out where a source cannot tell of changes. */
  openFollower?(request: FollowRequest): Promise<Follower>;
  /** Left out together with `openFollower`. */
  watchChanges?(): Promise<ChangeWatch>;
  /** Gives up connections that it can open again, because nothing is asked for a while. */
  rest?(): Promise<void>;
  close(): Promise<void>;
}

/** Which source a pipeline means. */
export interface SourceRef {
  readonly source_type: string;
  readonly source_connection: string;
}

export interface ReadRequest {
  readonly query: string;
  readonly columns: readonly Column[];
  /** Empty: in any order; such a read cannot be continued. */
  readonly orderBy: readonly string[];
  /** A shorter position than `orderBy` stands before every row that begins with it. */
  readonly after: ScanPosition | null;
  /** Only rows that a read `after` this position would not give. */
  readonly until?: ScanPosition | null;
  /** Only rows with one of these keys. */
  readonly only?: KeyChoice | undefined;
  /** True: rows at the position are read again. Needed where a position may stand for several rows of the target. */
  readonly inclusive: boolean;
  /** A snapshot that another session of the same database has exported: read as of that moment. */
  readonly snapshot?: string | undefined;
  /**
   * Rows without a value in the first ordering column: read last, left out, or the only ones read. A row that lacks one
   * of the other ordering columns is read after every position that has not passed its first value. `none`: a check has
   * shown that no row lacks any of them. `first`: read first, whatever the position, so that the reader can refuse them.
   */
  readonly nulls: "last" | "excluded" | "only" | "none" | "first";
  /** True: the ordering columns are the key. A second row with a key would be skipped; it ends the read instead. */
  readonly eachOnce?: boolean;
}

/** An incremental key that is not a time, so it cannot be compared with a horizon. */
export interface UnstampedKey {
  readonly query: string;
  readonly column: Column;
  readonly after: ScanPosition | null;
}

export interface KeyChoice {
  readonly columns: readonly string[];
  readonly keys: readonly (readonly string[])[];
  /** True: compare texts, because a key may not be a value of the column's type. An index cannot help then. */
  readonly byText: boolean;
}
