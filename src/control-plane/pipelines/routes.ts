import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import { parseTaskPlan } from "../../domain/task-plan.ts";
import type { PipelineState } from "../../meta-store/meta-store.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../server.ts";
import { checkConfiguration } from "./check-configuration.ts";
import { operations } from "./operations.ts";

export function pipelineRoutes(api: Api, parts: ApiParts): void {
  configurationRoutes(api, parts);
  requestRoutes(api, parts);
  restoreRoutes(api, parts);
  stateRoutes(api, parts);
  observationRoutes(api, parts);
}

function configurationRoutes(api: Api, { store, targets }: ApiParts): void {
  api.get("/pipelines", { schema: operations.listPipelines }, ({ query }) => store.listPipelines(query));

  api.post("/pipelines", { schema: operations.createPipeline }, async (request, reply) => {
    const { body } = request;
    checkConfiguration(body, targets);
    const pipeline = await store.createPipeline(body, actorOf(request).name);
    return reply.code(201).header("location", `/api/v1/pipelines/${pipeline.id}`).send(pipeline);
  });

  api.get("/pipelines/:id", { schema: operations.getPipeline }, ({ params }) => store.getPipeline(params.id));

  api.patch("/pipelines/:id", { schema: operations.updatePipeline }, async (request) => {
    const { params, body } = request;
    const { id } = await store.getPipeline(params.id);
    return store.updatePipeline(id, body, actorOf(request).name, (merged) => checkConfiguration(merged, targets, body));
  });

  api.delete("/pipelines/:id", { schema: operations.deletePipeline }, async ({ params }, reply) => {
    const { id } = await store.getPipeline(params.id);
    await store.deletePipeline(id);
    return reply.code(204).send();
  });
}

function requestRoutes(api: Api, { store }: ApiParts): void {
  api.post("/pipelines/:id/run", { schema: operations.runPipeline }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    return store.requestRun(id, "api");
  });

  api.post("/pipelines/:id/pause", { schema: operations.pausePipeline }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    return store.requestPause(id);
  });
}

function restoreRoutes(api: Api, { store, targets }: ApiParts): void {
  api.post("/pipelines/:id/restore-previous", { schema: operations.restorePreviousTarget }, async ({ params }) => {
    const pipeline = await store.getPipeline(params.id);
    const { target } = parseTaskPlan(pipeline, targets);
    if (target.kind !== "elasticsearch" || pipeline.mode !== "full") {
      throw new VitrinaError("NOT_SUPPORTED", "Only an index that is loaded in mode full keeps the one before.", {
        hint: "Correct the source and run the pipeline again.",
      });
    }
    return store.requestRestore(pipeline.id);
  });
}

function stateRoutes(api: Api, { store }: ApiParts): void {
  api.get("/pipelines/:id/state", { schema: operations.getPipelineState }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    return stateAnswer(id, await store.getState(id));
  });

  api.post("/pipelines/:id/state/reset", { schema: operations.resetPipelineState }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    await store.resetState(id);
    return stateAnswer(id, await store.getState(id));
  });

  api.post("/pipelines/:id/state/keep", { schema: operations.keepPipelineState }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    await store.keepState(id);
    return stateAnswer(id, await store.getState(id));
  });
}

function observationRoutes(api: Api, { store }: ApiParts): void {
  api.get("/pipelines/:id/status", { schema: operations.getPipelineStatus }, async ({ params }) => {
    const { id, name, status, enabled } = await store.getPipeline(params.id);
    const { items } = await store.listRuns(id, { limit: 1 });
    return { id, name, status, enabled, last_run: items[0] ?? null };
  });
}

function stateAnswer(id: PipelineId, state: PipelineState) {
  return {
    pipeline_id: id,
    last_processed_value: state.watermark.value,
    last_processed_id: state.watermark.id,
    scan_position: state.scanPosition === null ? null : [...state.scanPosition],
    batches_committed: state.batchNo,
    updated_at: state.updatedAt,
  };
}
