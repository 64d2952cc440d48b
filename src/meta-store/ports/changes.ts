import type { Changes } from "../../domain/change.ts";
import type { PipelineId } from "../../domain/pipeline.ts";

/** Tells what changes, to whoever follows it. */
export interface ChangeFeed {
  /**
   * Calls back with the id of a pipeline whose status, configuration or runs changed; with null when something may have
   * been missed. Batches do not call.
   */
  onChange(changed: (id: PipelineId | null) => void): Promise<{ close(): Promise<void> }>;
  /** The latest state of what changed since a point; `null`: only the point itself, and the runs under way. */
  since(point: string | null): Promise<Changes>;
}
