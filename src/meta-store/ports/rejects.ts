import type { PipelineId } from "../../domain/pipeline.ts";
import type { Reject } from "../../domain/reject.ts";
import type { Page, PageRequest } from "./page.ts";
import type { RunFailure } from "./run-queue.ts";

/** Rows that the target refused. */
export interface RejectStore {
  /** Newest first. */
  list(id: PipelineId, page: RejectsPage): Promise<Page<Reject>>;
  /** Marks rejects, all or some, and requests the run that tries them again. Nothing marked, nothing requested. */
  retry(id: PipelineId, ids: readonly number[] | undefined): Promise<number>;
  discard(id: PipelineId, ids: readonly number[] | undefined): Promise<number>;
  /** Those marked for a retry, oldest first. */
  toRetry(id: PipelineId, limit: number): Promise<RejectToRetry[]>;
  /** Those whose row has no value in this column. */
  without(id: PipelineId, column: string): Promise<number[]>;
  /** Those of rows with one of these keys. */
  ofKeys(id: PipelineId, keys: readonly RejectToRetry["key"][]): Promise<number[]>;
  count(id: PipelineId): Promise<number>;
  /** They cannot be tried again; they stay, unmarked, and say why. */
  giveUp(id: PipelineId, ids: readonly number[], failure: RunFailure): Promise<void>;
}

interface RejectsPage extends PageRequest {
  /** Only those of this run. */
  readonly runId?: string | undefined;
}

export interface RejectToRetry {
  readonly id: number;
  readonly key: Readonly<Record<string, string | null>>;
}
