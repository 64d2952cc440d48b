import { z } from "zod";
import {
  newPipelineSchema,
  PIPELINE_MODES,
  pipelinePatchSchema,
  pipelineSchema,
  waitingSchema,
} from "../../domain/pipeline.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { runSchema } from "../../domain/run.ts";
import { waitSchema } from "../changes/change-listener.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery, wholeNumber } from "../parameters.ts";
import { problems } from "../problem.ts";
import { savedPipelineSchema } from "./answer.ts";

/** What each operation takes and answers: checked by the server, and shown at /docs. */

const tags = ["pipelines"];
const params = idParams;
const theSavedPipeline = answer("The pipeline as it is now.", savedPipelineSchema);
const thePipeline = answer("The pipeline as it is now.", pipelineSchema);

const statusSchema = z.object({
  id: z.guid(),
  name: z.string(),
  status: z.enum(PIPELINE_STATUSES),
  enabled: z.boolean(),
  run_request: z.int().describe("The number of the request that is told of: the last one, or the one asked for."),
  waiting: waitingSchema.nullable().describe("Set while it waits for a temporary problem to go away."),
  over: z.boolean().describe("True when nothing of that request is waiting or under way any more."),
  last_run: runSchema
    .nullable()
    .describe("The last run that loads or restores, or the last attempt of the request; null before it."),
});

const listQuery = pageQuery.extend({
  status: z.enum(PIPELINE_STATUSES).optional().describe("Only pipelines of this status."),
  enabled: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional()
    .describe("Only enabled pipelines, or only disabled ones."),
  mode: z.enum(PIPELINE_MODES).optional().describe("Only pipelines of this mode."),
  name: z.string().max(63).optional().describe("Only pipelines whose name begins like this."),
  target_table: z.string().max(200).optional().describe("Only pipelines with this target."),
});

export const operations = {
  listPipelines: {
    tags,
    operationId: "listPipelines",
    summary: "List pipelines by name",
    querystring: listQuery,
    response: { 200: answer("A page of pipelines.", pageOf(pipelineSchema)), ...problems(422) },
  },
  createPipeline: {
    tags,
    operationId: "createPipeline",
    summary: "Create a pipeline",
    description:
      "The header Location of the answer is its path. A query that its source refuses is not saved; where the source cannot be asked, the warnings say so.",
    body: newPipelineSchema,
    response: { 201: answer("The new pipeline.", savedPipelineSchema), ...problems(400, 409, 413, 415, 422) },
  },
  getPipeline: {
    tags,
    operationId: "getPipeline",
    summary: "Read a pipeline",
    description: "With If-None-Match and an ETag that still fits, the answer is 304 without a body.",
    params,
    response: { 200: thePipeline, 304: z.undefined().describe("It is as you have it."), ...problems(404) },
  },
  updatePipeline: {
    tags,
    operationId: "updatePipeline",
    summary: "Change a pipeline",
    description:
      "While it runs, only batch_size, retry_for_seconds, description, schedule_interval, enabled, max_rejects and max_delete_percent may change. With If-Match, only if nobody changed it since that ETag was answered.",
    params,
    body: pipelinePatchSchema,
    response: { 200: theSavedPipeline, ...problems(400, 404, 409, 412, 413, 415, 422) },
  },
  updatePipelineConfig: {
    tags,
    operationId: "updatePipelineConfig",
    summary: "Change a pipeline, by POST",
    description: "The same as PATCH of the pipeline.",
    params,
    body: pipelinePatchSchema,
    response: { 200: theSavedPipeline, ...problems(400, 404, 409, 412, 413, 415, 422) },
  },
  deletePipeline: {
    tags,
    operationId: "deletePipeline",
    summary: "Delete a pipeline",
    description: "Its runs and state go with it; the target keeps its data.",
    params,
    response: { 204: z.undefined().describe("It is gone."), ...problems(404, 409, 412) },
  },
  runPipeline: {
    tags,
    operationId: "runPipeline",
    summary: "Request a run",
    description:
      "Resumes a paused pipeline and retries a failed one; one that waits until trouble passes is tried at once. Asking twice is the same as asking once. Refused until the previous index is back, if that was requested.",
    params,
    response: { 200: thePipeline, ...problems(404, 409) },
  },
  pausePipeline: {
    tags,
    operationId: "pausePipeline",
    summary: "Request a pause",
    description:
      "The run stops after its current batch, or at once while it waits until trouble passes; a later run continues there. Asking twice is the same as asking once. Only a load can be paused.",
    params,
    response: { 200: thePipeline, ...problems(404, 409) },
  },
  cancelPipeline: {
    tags,
    operationId: "cancelPipeline",
    summary: "Cancel a run, or the request for one",
    description:
      "A request that no runner has taken is withdrawn at once. A run ends soon: the batch under way is given up, those before it stay, and a later run continues there. The pipeline is then as it was before the run was requested. Where nothing is requested or under way, nothing changes.",
    params,
    response: { 200: thePipeline, ...problems(404, 409) },
  },
  restorePreviousTarget: {
    tags,
    operationId: "restorePreviousTarget",
    summary: "Request the previous index",
    description:
      "For an index that a full load builds: a runner points its name back to the index before the last load, in one step. Asked again, it points forward again. Until that has ended, the pipeline can neither be run nor paused, only cancelled. The runs show how it went; the next load builds a new index.",
    params,
    response: { 200: thePipeline, ...problems(404, 409, 422) },
  },
  getPipelineStatus: {
    tags,
    operationId: "getPipelineStatus",
    summary: "Read the status and the last run",
    description:
      "With `wait`, the answer comes when nothing is requested or under way any more. With `run_request`, as `run` answered it, only that request counts: the answer comes when it is over, and last_run is the last attempt of it.",
    params,
    querystring: z.strictObject({
      wait: waitSchema.default(0).describe("Wait at most so long, up to 60s, until it has come to rest."),
      run_request: wholeNumber(0, 2_000_000_000).optional().describe("The request to follow."),
    }),
    response: { 200: answer("The status and the last run.", statusSchema), ...problems(404, 422) },
  },
};
