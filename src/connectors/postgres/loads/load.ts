import type { Client } from "../../../postgres/connection.ts";
import type { KeyRange } from "../../sink.ts";

/** How staged rows get into the target: one file per way. All methods run inside a transaction of the caller. */
export interface Load {
  /** For people, and to recognise an unfinished load of the same kind. */
  readonly name: string;
  /** True when an unfinished load of this kind is there to be continued. */
  canResume(client: Client): Promise<boolean>;
  begin(client: Client): Promise<void>;
  apply(client: Client): Promise<AppliedRows>;
  /** Once per batch, after its rows were applied; not when some of them were refused. */
  applyRange(client: Client, range: KeyRange): Promise<void>;
  finish(client: Client): Promise<{ rows_deleted: number }>;
}

export interface AppliedRows {
  readonly rows_written: number;
  readonly rows_unchanged: number;
  readonly rows_deduplicated: number;
}
