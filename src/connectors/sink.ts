import type { SqlSession } from "../domain/sql-session.ts";
import type { Target } from "../domain/target.ts";
import type { Column, Row } from "./source.ts";

/**
 * Where rows go.
 *
 * Contract. `prepare` checks everything that can be known before a row is read, and changes nothing but what
 * `createTarget` asks for. Writing the same rows twice leaves the target as writing them once. A batch is durable when
 * `write` resolves; when it rejects, nothing of the batch is visible, or writing it again gives the same result.
 */
export interface Sink {
  prepare(request: SinkRequest): Promise<SinkWriter>;
}

export interface SinkRequest {
  readonly target: Target;
  readonly columns: readonly Column[];
  /** Empty: the target's own key. */
  readonly key: readonly string[];
  readonly createTarget: boolean;
}

interface WriteCounts {
  readonly rows_written: number;
  readonly rows_unchanged: number;
  readonly rows_deduplicated: number;
}

/** Commits the checkpoint. A sink with transactions calls it inside the transaction that wrote the batch. */
export type CommitBatch<T> = (transaction: SqlSession, counts: WriteCounts) => Promise<T>;

export interface SinkWriter {
  readonly key: readonly string[];
  write<T>(rows: readonly Row[], commit: CommitBatch<T>): Promise<T>;
  close(): Promise<void>;
}
