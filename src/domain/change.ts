import type { Pipeline } from "./pipeline.ts";
import type { Run } from "./run.ts";

/** What people watch of a pipeline. */
type WatchedPipeline = Pick<Pipeline, "id" | "name" | "status" | "enabled" | "run_request" | "config_version">;

/** What changed since a point, each thing in its latest state. */
export interface Changes {
  /** Asking again from here misses nothing, but may repeat something. */
  readonly point: string;
  /** False when there are too many changes, or the point is not known: read the lists instead. */
  readonly complete: boolean;
  readonly pipelines: readonly WatchedPipeline[];
  /** Runs under way are always among them. */
  readonly runs: readonly Run[];
}
