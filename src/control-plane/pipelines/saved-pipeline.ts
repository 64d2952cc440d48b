import { z } from "zod";
import { type Pipeline, pipelineSchema } from "../../domain/pipeline.ts";
import { type Finding, findingSchema } from "../validate/findings.ts";

/** What saving answers: the pipeline, and what there is to say about it. */
export const savedPipelineSchema = pipelineSchema.extend({
  warnings: z
    .array(findingSchema)
    .optional()
    .describe("What could not be checked, and what a run survives; left out when there is nothing."),
});
export type SavedPipeline = Pipeline & { readonly warnings?: Finding[] };

export function saved(pipeline: Pipeline, warnings: readonly Finding[]): SavedPipeline {
  return warnings.length === 0 ? pipeline : { ...pipeline, warnings: [...warnings] };
}
