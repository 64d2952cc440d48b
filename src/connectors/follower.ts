import type { FollowPosition, FollowTables } from "../domain/follow.ts";
import type { Column } from "../domain/row.ts";
import type { FollowPlan } from "../sql-analysis/follow-plan.ts";
import type { SourceReader } from "./source-reader.ts";

/** What is asked of a source so that a mart can follow its changes. */
export interface FollowRequest {
  /** Examined before. */
  readonly query: string;
  readonly columns: readonly Column[];
  readonly key: readonly string[];
  /** `follow.tables` of the pipeline. */
  readonly tables: FollowTables;
}

/**
 * Follows the changes of one query.
 *
 * Contract. A round is one snapshot of the source: the changes since a position, the keys that they concern and the rows
 * of these keys are all read in it, and `position` is the next one's start. Whatever the source cannot vouch for makes
 * `keysSince` answer `everything` with the reason: a change is never missed because of what could not be known.
 */
export interface Follower {
  readonly plan: FollowPlan;
  /** Throws CHANGES_NOT_RECORDED where the source does not record the changes of every followed table. */
  openRound(): Promise<FollowRound>;
  /** Whether another round would find something; cheaper than a round. Whoever believes it must ask again later. */
  hasChangedSince(position: FollowPosition): Promise<boolean>;
  /** Whether what the first plan was made from is still as it was then: every relation, its columns, and every view. */
  isCurrent(): Promise<boolean>;
  close(): Promise<void>;
}

export interface FollowRound {
  readonly position: FollowPosition;
  /** For `ReadRequest.snapshot`: a whole compare reads in the snapshot of the round. */
  readonly exportedSnapshot: string;
  keysSince(position: FollowPosition, limits: RoundLimits): Promise<RoundKeys>;
  /** The rows that the query has for these keys, in any order. One reader at a time. */
  open(keys: readonly (readonly string[])[]): Promise<SourceReader>;
  /** The query's rows with a null in the key. */
  openWithoutKey(): Promise<SourceReader>;
  close(): Promise<void>;
}

export interface RoundLimits {
  readonly maxChanges: number;
  readonly maxKeys: number;
}

export interface KeysOfRound {
  readonly kind: "keys";
  readonly changes: number;
  readonly keys: readonly (readonly string[])[];
  /** A change led to a key with a null in it: rows without a key may have come or gone. */
  readonly mayLackKeys: boolean;
}

export type RoundKeys =
  | KeysOfRound
  /** For people: "content.film was truncated". */
  | { readonly kind: "everything"; readonly reason: string };

/** For the watcher: which of these positions have changes behind them, by one question to the source. */
export interface ChangeWatch {
  changedSince(positions: readonly WatchedPosition[]): Promise<readonly string[]>;
  /**
   * Lets the source forget what all of these have seen. Given the positions of every pipeline that follows the source,
   * also of those that run or are paused: whoever is left out may have to compare everything. Returns the pipelines that
   * the source would have had to keep too much for: they compare everything when they come back.
   */
  forgetSeen(positions: readonly WatchedPosition[]): Promise<readonly string[]>;
  /** How often that is worth its while. */
  readonly forgetEveryMs: number;
  close(): Promise<void>;
}

export interface WatchedPosition {
  readonly pipelineId: string;
  readonly position: FollowPosition;
  /** `schema.table` of each followed table. */
  readonly tables: readonly string[];
  /** Its run would fail as long as the source does not record the changes of all of them: then it does not count. */
  readonly ifRecorded?: boolean;
}
