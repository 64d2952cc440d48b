import type { DeletionGuard, SinkRequest, SinkWriter } from "../../sink.ts";
import type { BulkResult } from "../bulk.ts";
import type { SearchClient } from "../client.ts";
import type { Cluster } from "../cluster.ts";
import type { IndexDefinition } from "../index-definition.ts";
import type { IndexFamily, IndexMark } from "../index-family.ts";
import type { IndexOptions } from "../options.ts";
import type { Patience } from "../patience.ts";
import type { IndexTarget } from "../target.ts";

export interface LoadParts {
  readonly client: SearchClient;
  readonly cluster: Cluster;
  readonly patience: Patience;
  readonly name: string;
  readonly key: readonly string[];
  readonly request: SinkRequest<IndexTarget, IndexOptions>;
  readonly definition: IndexDefinition;
  /** As it was when the load was opened. */
  readonly family: IndexFamily;
}

/** How documents get into the index that is searched: one file per strategy. */
export interface IndexLoad extends Pick<SinkWriter, "takeMark" | "lossSince"> {
  /** Shown to people. */
  readonly name: string;
  /** True when an unfinished load is there to be continued. */
  readonly resumed: boolean;
  begin(): Promise<void>;
  /** Called before the first batch: the alias to write through, which no earlier claim can use. */
  takeWriteAlias(): Promise<string>;
  /** Called with each batch that was written. */
  count(result: BulkResult): void;
  /** `batchNo` is that of the last batch. Throws when the guard forbids what would be deleted. */
  finish(batchNo: number, guard: DeletionGuard): Promise<{ rows_deleted: number }>;
  /** After `finish`, while no other runner can take the pipeline over. May be repeated. */
  makeVisible(): Promise<void>;
  giveUp(): Promise<void>;
  /** After a load, however it became visible: deletes what is no longer needed. */
  tidyUp(): Promise<void>;
}

export function markOf({ name, key, request, definition }: LoadParts): IndexMark {
  const { pipelineId, runId } = request.claim;
  return { target: name, pipeline_id: pipelineId, run_id: runId, key, definition: definition.fingerprint };
}

export const indexOfRun = ({ name, request }: LoadParts): string => `${name}__${request.claim.runId}`;
