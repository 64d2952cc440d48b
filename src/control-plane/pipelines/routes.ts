import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import { isAtRest } from "../../domain/pipeline-status.ts";
import { parseTaskPlan } from "../../domain/task-plan.ts";
import type { MetaStore } from "../../meta-store/meta-store.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../api.ts";
import type { ChangeListener } from "../changes/change-listener.ts";
import { waitUntil } from "../changes/wait.ts";
import { changeConfiguration } from "./change-configuration.ts";
import { expectedVersion, readerHas, sendPipeline } from "./etag.ts";
import { judge, requireNone, storedPipeline, tellAllProblems } from "./judge.ts";
import { logStatusChange } from "./log-status-change.ts";
import { operations } from "./operations.ts";
import { saved } from "./saved-pipeline.ts";

export function pipelineRoutes(api: Api, parts: ApiParts, listener: ChangeListener): void {
  configurationRoutes(api, parts);
  requestRoutes(api, parts);
  restoreRoutes(api, parts);
  observationRoutes(api, parts, listener);
}

function configurationRoutes(api: Api, parts: ApiParts): void {
  const { store } = parts;

  api.get("/pipelines", { schema: operations.listPipelines }, ({ query }) => {
    const { limit, after, ...filter } = query;
    return store.pipelines.list({ limit, after }, filter);
  });

  const asNew = tellAllProblems(parts, operations.createPipeline.body, async () => undefined);
  api.post("/pipelines", { schema: operations.createPipeline, preValidation: asNew }, async (request, reply) => {
    const { body } = request;
    const { problems, warnings } = await judge(parts, body, undefined);
    requireNone(problems);
    const pipeline = await store.pipelines.create(body, actorOf(request).name);
    reply.code(201).header("location", `/api/v1/pipelines/${pipeline.id}`);
    sendPipeline(reply, pipeline);
    return saved(pipeline, warnings);
  });

  api.get("/pipelines/:id", { schema: operations.getPipeline }, async (request, reply) => {
    const pipeline = sendPipeline(reply, await store.pipelines.get(request.params.id));
    return readerHas(request, pipeline) ? reply.code(304).send() : pipeline;
  });

  const asChange = tellAllProblems(parts, operations.updatePipeline.body, storedPipeline(parts));
  api.patch("/pipelines/:id", { schema: operations.updatePipeline, preValidation: asChange }, (request, reply) =>
    changeConfiguration(parts, request, reply, request.params.id, request.body),
  );

  const byPost = { schema: operations.updatePipelineConfig, preValidation: asChange };
  api.post("/pipelines/:id/update-config", byPost, (request, reply) =>
    changeConfiguration(parts, request, reply, request.params.id, request.body),
  );

  api.delete("/pipelines/:id", { schema: operations.deletePipeline }, async (request, reply) => {
    const { id } = await store.pipelines.get(request.params.id);
    await store.pipelines.delete(id, expectedVersion(request));
    return reply.code(204).send();
  });
}

function requestRoutes(api: Api, { store, log }: ApiParts): void {
  api.post("/pipelines/:id/run", { schema: operations.runPipeline }, async (request, reply) => {
    const before = await store.pipelines.get(request.params.id);
    const pipeline = await store.requests.run(before.id, "api");
    logStatusChange(log, request, before, pipeline, "run requested");
    return sendPipeline(reply, pipeline);
  });

  api.post("/pipelines/:id/pause", { schema: operations.pausePipeline }, async (request, reply) => {
    const before = await store.pipelines.get(request.params.id);
    const pipeline = await store.requests.pause(before.id);
    logStatusChange(log, request, before, pipeline, "pause requested");
    return sendPipeline(reply, pipeline);
  });

  api.post("/pipelines/:id/cancel", { schema: operations.cancelPipeline }, async (request, reply) => {
    const before = await store.pipelines.get(request.params.id);
    const pipeline = await store.requests.cancel(before.id);
    logStatusChange(log, request, before, pipeline, "cancel requested");
    return sendPipeline(reply, pipeline);
  });
}

function restoreRoutes(api: Api, { store, targets, log }: ApiParts): void {
  api.post("/pipelines/:id/restore-previous", { schema: operations.restorePreviousTarget }, async (request, reply) => {
    const pipeline = await store.pipelines.get(request.params.id);
    const { target } = parseTaskPlan(pipeline, targets);
    if (!targets.can(target).keepsPrevious || pipeline.mode !== "full") {
      const keeping = targets.nounsOf(({ keepsPrevious }) => keepsPrevious);
      throw new VitrinaError("NOT_SUPPORTED", `Only ${keeping} that is loaded in mode full keeps the one before.`, {
        hint: "Correct the source and run the pipeline again.",
      });
    }
    const requested = await store.requests.restore(pipeline.id);
    logStatusChange(log, request, pipeline, requested, "restore requested");
    return sendPipeline(reply, requested);
  });
}

function observationRoutes(api: Api, { store }: ApiParts, listener: ChangeListener): void {
  api.get("/pipelines/:id/status", { schema: operations.getPipelineStatus }, async ({ params, query }, reply) => {
    const { id } = await store.pipelines.get(params.id);
    return waitUntil({
      listener,
      pipelineId: id,
      waitMs: query.wait,
      reply,
      look: () => statusOf(store, id, query.run_request),
      isOver: ({ over }) => over,
    });
  });
}

async function statusOf(store: MetaStore, id: PipelineId, asked: number | undefined) {
  const { name, status, enabled, run_request, waiting } = await store.pipelines.get(id);
  const filter = asked === undefined ? {} : { run_request: asked };
  const { items } = await store.runs.list(id, { limit: 1 }, filter);
  const over = (asked !== undefined && asked < run_request) || isAtRest(status);
  return { id, name, status, enabled, run_request: asked ?? run_request, waiting, over, last_run: items[0] ?? null };
}
