import { z } from "zod";
import { newPipelineSchema, pipelinePatchSchema, pipelineSchema } from "../../domain/pipeline.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { runSchema } from "../../domain/run.ts";
import { problemSchema } from "../error-handler.ts";
import { pageOf, pageQuery } from "../paging.ts";
import type { Api, ApiParts } from "../server.ts";
import { checkConfiguration } from "./check-configuration.ts";

const idParams = z.object({ id: z.string().min(1).max(100).describe("The id or the name of the pipeline.") });

const statusSchema = z.object({
  id: z.guid(),
  name: z.string(),
  status: z.enum(PIPELINE_STATUSES),
  enabled: z.boolean(),
  last_run: runSchema.nullable(),
});

const stateSchema = z.object({
  pipeline_id: z.guid(),
  last_processed_value: z.string().nullable(),
  last_processed_id: z.string().nullable(),
  scan_position: z.array(z.string()).nullable().describe("Key of the last row of a load that has not ended."),
  batches_committed: z.int(),
  updated_at: z.date().nullable(),
});

/** Until people log in, every change has the same author. */
const AUTHOR = "api";

export function pipelineRoutes({ store, targets }: ApiParts, hide: boolean) {
  const tags = ["pipelines"];
  const problems = { "4xx": problemSchema };

  return async (api: Api): Promise<void> => {
    api.get(
      "/pipelines",
      {
        schema: {
          hide,
          tags,
          summary: "List pipelines",
          querystring: pageQuery,
          response: { 200: pageOf(pipelineSchema), ...problems },
        },
      },
      ({ query }) => store.listPipelines(query),
    );

    api.post(
      "/pipelines",
      {
        schema: {
          hide,
          tags,
          summary: "Create a pipeline",
          body: newPipelineSchema,
          response: { 201: pipelineSchema, ...problems },
        },
      },
      async ({ body }, reply) => {
        checkConfiguration(body, targets);
        const pipeline = await store.createPipeline(body, AUTHOR);
        return reply.code(201).header("location", `/api/v1/pipelines/${pipeline.id}`).send(pipeline);
      },
    );

    api.get(
      "/pipelines/:id",
      {
        schema: {
          hide,
          tags,
          summary: "Read a pipeline",
          params: idParams,
          response: { 200: pipelineSchema, ...problems },
        },
      },
      ({ params }) => store.getPipeline(params.id),
    );

    api.patch(
      "/pipelines/:id",
      {
        schema: {
          hide,
          tags,
          summary: "Change a pipeline",
          description: "While it runs, only batch_size, description, schedule_interval and enabled may change.",
          params: idParams,
          body: pipelinePatchSchema,
          response: { 200: pipelineSchema, ...problems },
        },
      },
      async ({ params, body }) => {
        const { id } = await store.getPipeline(params.id);
        return store.updatePipeline(id, body, AUTHOR, (merged) => checkConfiguration(merged, targets));
      },
    );

    api.delete(
      "/pipelines/:id",
      {
        schema: {
          hide,
          tags,
          summary: "Delete a pipeline",
          description: "Its runs and state go with it; the target keeps its data.",
          params: idParams,
          response: { 204: z.null(), ...problems },
        },
      },
      async ({ params }, reply) => {
        await store.deletePipeline((await store.getPipeline(params.id)).id);
        return reply.code(204).send(null);
      },
    );

    api.post(
      "/pipelines/:id/run",
      {
        schema: {
          hide,
          tags,
          summary: "Request a run",
          description: "Resumes a paused pipeline and retries a failed one. Asking twice is the same as asking once.",
          params: idParams,
          response: { 200: pipelineSchema, ...problems },
        },
      },
      async ({ params }) => store.requestRun((await store.getPipeline(params.id)).id, "api"),
    );

    api.post(
      "/pipelines/:id/pause",
      {
        schema: {
          hide,
          tags,
          summary: "Request a pause",
          description: "The run stops after its current batch; a later run continues there.",
          params: idParams,
          response: { 200: pipelineSchema, ...problems },
        },
      },
      async ({ params }) => store.requestPause((await store.getPipeline(params.id)).id),
    );

    api.get(
      "/pipelines/:id/status",
      {
        schema: {
          hide,
          tags,
          summary: "Status and last run",
          params: idParams,
          response: { 200: statusSchema, ...problems },
        },
      },
      async ({ params }) => {
        const { id, name, status, enabled } = await store.getPipeline(params.id);
        const { items } = await store.listRuns(id, { limit: 1 });
        return { id, name, status, enabled, last_run: items[0] ?? null };
      },
    );

    api.get(
      "/pipelines/:id/state",
      { schema: { hide, tags, summary: "Checkpoint", params: idParams, response: { 200: stateSchema, ...problems } } },
      async ({ params }) => {
        const { id } = await store.getPipeline(params.id);
        const state = await store.getState(id);
        return {
          pipeline_id: id,
          last_processed_value: state.lastProcessedValue,
          last_processed_id: state.lastProcessedId,
          scan_position: state.scanPosition === null ? null : [...state.scanPosition],
          batches_committed: state.batchNo,
          updated_at: state.updatedAt,
        };
      },
    );
  };
}
