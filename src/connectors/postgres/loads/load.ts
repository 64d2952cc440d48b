import type { Client } from "../../../postgres/connection.ts";
import type { DeletionGuard, KeyRange } from "../../sink.ts";
import type { StagedRows } from "../stage.ts";

/** How staged rows get into the target: one file per strategy. All methods run inside the caller's transaction. */
export interface TableLoad {
  /** Shown to people, and used to recognise an unfinished load of the same kind. */
  readonly name: string;
  /** True when an unfinished load of this kind is there to be continued. */
  canResume(client: Client): Promise<boolean>;
  /** Only where something must exist before the first batch. */
  begin?(client: Client): Promise<void>;
  /** Settings for the planner, made at the beginning of a batch's transaction. */
  readonly batchSettings: string;
  apply(client: Client, staged: StagedBatch): Promise<AppliedRows>;
  /** Writes rows as `apply` does, only to learn whether they are refused: it is undone. */
  trialOf(relation: string): string;
  /** Only where rows are deleted: keeps the keys of refused rows, whose rows in the target stay as they are. */
  keepKeys?(relation: string): string;
  /** Throws when the guard forbids what would be deleted. */
  finish(client: Client, guard: DeletionGuard): Promise<{ rows_deleted: number }>;
}

interface StagedBatch {
  readonly rows: StagedRows;
  /** The keys that the staged rows stand for, but for those kept as refused. */
  readonly range: KeyRange;
}

interface AppliedRows {
  readonly rows_written: number;
  readonly rows_unchanged: number;
  readonly rows_deduplicated: number;
}
