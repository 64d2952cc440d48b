import type { FollowPosition } from "../../../domain/follow.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import type { Client } from "../../../postgres/connection.ts";
import type { FollowedTable, ImagesOf } from "../../../sql-analysis/follow-plan.ts";
import type { Fingerprint } from "./fingerprint.ts";
import type { RecordedTable } from "./recorder.ts";
import type { NamedRelation, TableFacts } from "./recording.ts";
import type { RecordingProblem } from "./recording-problems.ts";

/** How a source tells of its changes: by a table that triggers fill, or by the WAL behind a replication slot. */
export interface ChangeLog {
  /** Begins the transaction of a round. Before its snapshot, what must not move from then on is held or noted. */
  begin(client: Client, beginning: string): Promise<RoundLog>;
  /** Whether a round may find something, by one statement outside of any transaction. */
  hasChangedSince(session: SqlSession, earlier: LogPlace, tables: readonly FollowedTable[]): Promise<boolean>;
  close(): Promise<void>;
}

/** The log in the snapshot of a round. */
export interface RoundLog {
  /** What the catalogue says about these tables and their recording. */
  read(tables: readonly RecordedTable[], named: readonly NamedRelation[]): Promise<Recording>;
  /** All tables of the plan: of those whose changes are ignored, images are empty. */
  changesOf(tables: readonly FollowedTable[], recording: Recording): Promise<RoundChanges>;
}

export interface Recording {
  readonly facts: TableFacts;
  readonly problems: readonly RecordingProblem[];
  /** What the log itself adds to the fingerprint of a position. */
  readonly prints: Fingerprint;
}

/** Where a round stands in the log. */
export type LogPlace = Omit<FollowPosition, "fingerprint" | "written">;

export interface RoundChanges {
  /** The oid of the database, for the fingerprint. */
  readonly database: string | null;
  /** The place that belongs to the snapshot. It may be a better one after the changes were read. */
  readonly place: LogPlace;
  /** Those since an earlier place; counted no further than one above the limit. */
  since(earlier: LogPlace, limit: number): Promise<FoundChanges>;
}

export type FoundChanges =
  /** A sentence for people: not all of them are there. */
  | { readonly kind: "lost"; readonly reason: string }
  | {
      readonly kind: "found";
      readonly counts: readonly ChangeCount[];
      /** For one statement. */
      images(): RoundImages;
    };

/** The rows as they were and as they are. */
export interface RoundImages {
  readonly images: ImagesOf;
  /** What goes with the statement; complete when its text is. */
  readonly values: readonly unknown[];
}

/** The changes of one table since a position. */
export interface ChangeCount {
  readonly relation: string;
  readonly count: number;
  readonly isTruncated: boolean;
  /** Something changed of which the image is missing, or lacks a column. */
  readonly isIncomplete: boolean;
}
