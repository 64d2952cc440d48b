import { z } from "zod";
import { newPipelineSchema, pipelinePatchSchema, pipelineSchema } from "../../domain/pipeline.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { runSchema } from "../../domain/run.ts";
import { answer } from "../openapi.ts";
import { pageOf, pageQuery } from "../paging.ts";
import { problems } from "../problem.ts";
import { idParams } from "./id-params.ts";

/** What each operation takes and answers: checked by the server, and shown at /docs. */

const tags = ["pipelines"];
const params = idParams;
const thePipeline = answer("The pipeline as it is now.", pipelineSchema);

const statusSchema = z.object({
  id: z.guid(),
  name: z.string(),
  status: z.enum(PIPELINE_STATUSES),
  enabled: z.boolean(),
  last_run: runSchema.nullable().describe("Null before the first run."),
});

const stateSchema = z.object({
  pipeline_id: z.guid(),
  last_processed_value: z.string().nullable(),
  last_processed_id: z.string().nullable(),
  scan_position: z.array(z.string()).nullable().describe("Key of the last row of a load that has not ended."),
  batches_committed: z.int(),
  updated_at: z.date().nullable().describe("Null before the first batch."),
});

const theState = answer("Where the pipeline is now.", stateSchema);

export const operations = {
  resetPipelineState: {
    tags,
    operationId: "resetPipelineState",
    summary: "Forget where the pipeline is",
    description: "The next run reads everything. The target keeps its data.",
    params,
    response: { 200: theState, ...problems(404, 409) },
  },
  keepPipelineState: {
    tags,
    operationId: "keepPipelineState",
    summary: "Keep the checkpoint although the query has changed",
    description:
      "For a change that leaves the old position right, such as a further column. Rows before it are not read again.",
    params,
    response: { 200: theState, ...problems(404, 409) },
  },
  listPipelines: {
    tags,
    operationId: "listPipelines",
    summary: "List pipelines by name",
    querystring: pageQuery,
    response: { 200: answer("A page of pipelines.", pageOf(pipelineSchema)), ...problems(422) },
  },
  createPipeline: {
    tags,
    operationId: "createPipeline",
    summary: "Create a pipeline",
    description: "The header Location of the answer is its path.",
    body: newPipelineSchema,
    response: { 201: answer("The new pipeline.", pipelineSchema), ...problems(400, 409, 413, 415, 422) },
  },
  getPipeline: {
    tags,
    operationId: "getPipeline",
    summary: "Read a pipeline",
    params,
    response: { 200: thePipeline, ...problems(404) },
  },
  updatePipeline: {
    tags,
    operationId: "updatePipeline",
    summary: "Change a pipeline",
    description:
      "While it runs, only batch_size, description, schedule_interval, enabled, max_rejects and max_delete_percent may change.",
    params,
    body: pipelinePatchSchema,
    response: { 200: thePipeline, ...problems(400, 404, 409, 413, 415, 422) },
  },
  deletePipeline: {
    tags,
    operationId: "deletePipeline",
    summary: "Delete a pipeline",
    description: "Its runs and state go with it; the target keeps its data.",
    params,
    response: { 204: z.undefined().describe("It is gone."), ...problems(404, 409) },
  },
  runPipeline: {
    tags,
    operationId: "runPipeline",
    summary: "Request a run",
    description: "Resumes a paused pipeline and retries a failed one. Asking twice is the same as asking once.",
    params,
    response: { 200: thePipeline, ...problems(404, 409) },
  },
  pausePipeline: {
    tags,
    operationId: "pausePipeline",
    summary: "Request a pause",
    description:
      "The run stops after its current batch; a later run continues there. Asking twice is the same as asking once.",
    params,
    response: { 200: thePipeline, ...problems(404, 409) },
  },
  restorePreviousTarget: {
    tags,
    operationId: "restorePreviousTarget",
    summary: "Request the previous index",
    description:
      "For an index that a full load builds: a runner points its name back to the index before the last load, in one step. Asked again, it points forward again. The runs show how it went; the next load builds a new index.",
    params,
    response: { 200: thePipeline, ...problems(404, 409, 422) },
  },
  getPipelineStatus: {
    tags,
    operationId: "getPipelineStatus",
    summary: "Read the status and the last run",
    params,
    response: { 200: answer("The status and the last run.", statusSchema), ...problems(404) },
  },
  getPipelineState: {
    tags,
    operationId: "getPipelineState",
    summary: "Read the checkpoint",
    params,
    response: { 200: answer("How far the pipeline has come.", stateSchema), ...problems(404) },
  },
};
