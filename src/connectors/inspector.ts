import type { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column, Row } from "../domain/row.ts";
import type { Target } from "../domain/target.ts";
import type { CursorRules } from "../domain/watermark.ts";
import type { FollowedTable, FollowPlan } from "../sql-analysis/follow-plan.ts";
import type { FollowRequest, WatchedPosition } from "./follower.ts";
import type { SinkRequest } from "./sink.ts";
import type { ReadRequest, SourceRef } from "./source.ts";

export type { FollowedTable, FollowPlan, ImagesOf } from "../sql-analysis/follow-plan.ts";
export type { ReadRequest, SourceRef } from "./source.ts";

/**
 * What the control-plane may ask of sources and targets: to plan a query, to show its first rows, to describe a table.
 *
 * Contract. Nothing is changed and no load is read. Every question ends within a time limit (with STATEMENT_TIMEOUT
 * or DATABASE_BUSY if that is too short), and is decided as a run would decide it: both use the same functions.
 */
export interface Inspector {
  /** What a pipeline may have as its `source_type`. */
  readonly sourceTypes: readonly string[];
  /** True where a run lets the source record its changes by itself, because the source is Vitrina's own. */
  recordsItself(of: SourceRef): boolean;
  /** Judges the text of a query, without asking the source. Throws QUERY_REFUSED. */
  checkQuery(of: SourceRef, query: string): Promise<void>;
  /** What a query reads, by its text alone: a view counts as itself. Written as targets of the same database are. */
  namedTables(of: SourceRef, query: string): Promise<readonly string[]>;
  /** Throws where there is no connection of that name and type. */
  source(of: SourceRef): Promise<SourceInspector>;
  /** `undefined` where only a runner talks to targets of this kind. */
  target(target: Target): Promise<TargetInspector | undefined>;
}

/** Connects at the first question. */
export interface SourceInspector {
  /** Called before any other question about a query. Throws QUERY_REFUSED if it does what it may not. */
  examine(query: string): Promise<ExaminedQuery>;
  /** For each of these tables and views, the tables behind it; none where it does not exist. */
  tablesBehind(names: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** The tables whose changes do not move the incremental key, so that no incremental load notices them. */
  unseenTables(query: string, key: string): Promise<readonly string[]>;
  cursorColumnProblems(columns: readonly Column[], rules: CursorRules): readonly VitrinaError[];
  /** Sequences behind the key that hand out numbers in advance, where no look-back makes up for it. */
  numbersAheadProblems(query: string, rules: CursorRules): Promise<readonly VitrinaError[]>;
  cursorRowProblems(query: string, rules: CursorRules): Promise<readonly VitrinaError[]>;
  /** Throws when the position where a load would start is not a valid value of the cursor. */
  requireFittingStart(columns: readonly Column[], rules: CursorRules): Promise<void>;
  /** True when rows of the query share a key. */
  repeatsKey(query: string, key: readonly string[]): Promise<boolean>;
  /** True when it is proven that no two rows of the query have the same non-null values in these columns. */
  isUnique(query: string, columns: readonly string[]): Promise<boolean>;
  /** How many rows of the query lack a part of the key; counted up to `limit`. */
  rowsWithoutKey(query: string, key: readonly string[], limit: number): Promise<number>;
  /** How many rows of the query the target's types would refuse; counted up to `limit`. */
  rowsRefused(query: string, refusals: readonly Refusal[], limit: number): Promise<number>;
  adviseIndex(query: string, orderBy: readonly string[]): Promise<IndexAdvice>;
  estimateRows(request: ReadRequest): Promise<number | null>;
  canSeek(request: ReadRequest, batchSize: number): Promise<boolean>;
  /** True when a session that put this mark into its database is in the same database as the reader. */
  seesMark(mark: string): Promise<boolean>;
  /** How the changes of each table of a query find the keys that they concern: the plan that a run follows, too. */
  followPlan(request: FollowRequest): Promise<FollowPlan>;
  /** Where the statements of a plan would read large tables as a whole, and the index that they lack. */
  followIndexes(plan: FollowPlan): Promise<readonly FollowIndex[]>;
  /** How far the source records the changes of these tables. */
  changesState(tables: readonly FollowedTable[]): Promise<ChangesState>;
  /** The SQL that its owner runs so that the changes of these tables, and of no others, are recorded. */
  changesScript(request: ScriptRequest): Promise<string>;
  /** What is recorded and not in these marts yet. */
  changesWaiting(positions: readonly WatchedPosition[]): Promise<WaitingAtSource>;
  /** Examines the query, too. On a connection of its own, which the signal ends. */
  preview(request: PreviewRequest, signal: AbortSignal): Promise<Preview>;
  close(): Promise<void>;
}

interface ExaminedQuery {
  readonly columns: readonly Column[];
  readonly problems: readonly VitrinaError[];
}

/** `diff`: only what the source lacks, or has too much. */
export type ScriptPurpose = "install" | "remove" | "diff";

export interface ScriptRequest {
  readonly purpose: ScriptPurpose;
  readonly tables: readonly FollowedTable[];
  /** False: some pipelines are left out, and what these tables do not need may be theirs. */
  readonly isComplete: boolean;
}

export interface FollowIndex {
  /** `schema.table`: whose changes are looked up without it. */
  readonly table: string;
  /** The table that is read as a whole for that. */
  readonly scans: string;
  /** Null: no index that could be made would help. */
  readonly statement: string | null;
  /** As a sentence: why none would. */
  readonly why: string | null;
}

/**
 * - `recorded`: every change is.
 * - `missing`: none is.
 * - `different`: not as the plan needs it, for the reason that is given: a column is missing, a trigger is off.
 */
export interface TableRecording {
  readonly table: string;
  readonly state: "recorded" | "missing" | "different";
  readonly reason: string | null;
}

export interface ChangesState {
  readonly tables: readonly TableRecording[];
  /** What the owner of the source should know. */
  readonly warnings: readonly string[];
}

export interface WaitingAtSource {
  /** By pipeline; none where nothing is recorded. */
  readonly byPipeline: ReadonlyMap<string, WaitingChanges>;
  /** Where changes come from a replication slot: what the server keeps for it. Known even where nothing could be counted. */
  readonly slot?: { readonly name: string; readonly keptBytes: number } | undefined;
  /** Why the changes could not be counted, although there is a slot: much WAL takes long to decode. */
  readonly uncounted?: VitrinaError | undefined;
}

export interface WaitingChanges {
  readonly changes: number;
  /** Null where none waits. */
  readonly oldestSeconds: number | null;
}

/**
 * - `indexed`: an index leads to any position.
 * - `missing`: `statement` would create one.
 * - `unknown`: the columns are computed, or come from a view or several tables.
 */
export type IndexAdvice =
  | { readonly kind: "indexed" }
  | { readonly kind: "missing"; readonly statement: string }
  | { readonly kind: "unknown"; readonly reason: string };

export interface PreviewRequest {
  readonly query: string;
  readonly limit: number;
  readonly timeoutMs: number;
  /** Longer texts are cut. */
  readonly maxCellCharacters: number;
  readonly maxBytes: number;
}

export interface Preview {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Where texts were cut, counted from 0. */
  readonly cut: readonly { readonly row: number; readonly column: number }[];
  /** False when rows were left out because there are more, or because of their size. */
  readonly complete: boolean;
}

export interface TargetInspector<T extends Target = Target> {
  inspect(question: TargetQuestion<T>): Promise<InspectedTarget>;
  /** True when rows can stay on the server if source and target are the same database. */
  readonly canPull: boolean;
  /** Puts a mark into the target's database while the source looks for it. */
  isSeenBy(look: (mark: string) => Promise<boolean>): Promise<boolean>;
}

export interface TargetQuestion<T extends Target = Target>
  extends Pick<SinkRequest<T>, "target" | "key" | "createTarget" | "addColumns" | "load"> {
  /** `undefined` when they cannot be known without running code. */
  readonly columns: readonly Column[] | undefined;
}

/** Values of a column that the target cannot take as they are. */
interface Refusal {
  /** SQL over the row `q` of a query. */
  readonly condition: string;
  /** `"title" is longer than 3 characters` */
  readonly reason: string;
}

export interface InspectedTarget {
  readonly exists: boolean;
  readonly key: readonly string[];
  readonly missing: readonly Column[];
  readonly extra: readonly string[];
  /** How rows become visible; undefined when the problems leave it open. */
  readonly strategy: string | undefined;
  /** True when an unfinished load of this kind is there, so that it can be continued. */
  readonly isResumable: boolean;
  readonly problems: readonly VitrinaError[];
  readonly warnings: readonly VitrinaError[];
  readonly refusals: readonly Refusal[];
}
