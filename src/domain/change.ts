import type { z } from "zod";
import { pipelineSchema } from "./pipeline.ts";
import type { Run } from "./run.ts";

/** What people watch of a pipeline. */
export const pipelineChangeSchema = pipelineSchema.pick({
  id: true,
  name: true,
  status: true,
  enabled: true,
  run_request: true,
  config_version: true,
});
export type PipelineChange = z.infer<typeof pipelineChangeSchema>;

/** What changed since a point, each thing in its latest state. */
export interface Changes {
  /** Whoever asks again from here misses nothing, and may be told something twice. */
  readonly point: string;
  /** False when there is more than could be told, or the point is unknown here: read the lists instead. */
  readonly complete: boolean;
  readonly pipelines: readonly PipelineChange[];
  /** Runs under way are always among them. */
  readonly runs: readonly Run[];
}
