import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type PipelineId, pipelineSchema } from "../../domain/pipeline.ts";
import { isAtRest, isHeld } from "../../domain/pipeline-status.ts";
import { changesBetween } from "../../domain/pipeline-version.ts";
import { parseTaskPlan } from "../../domain/task-plan.ts";
import type { MetaStore } from "../../meta-store/meta-store.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../api.ts";
import { type ChangeListener, waitUntil } from "../changes/change-listener.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { problems } from "../problem.ts";
import { expectedVersion, logStatusChange, readerHas, saved, sendPipeline } from "./answer.ts";
import { changeConfiguration } from "./change-configuration.ts";
import { judge, requireNone, storedPipeline, tellAllProblems } from "./judge.ts";
import { operations } from "./operations.ts";

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

async function statusOf(store: Pick<MetaStore, "pipelines" | "runs">, id: PipelineId, asked: number | undefined) {
  const { name, status, enabled, run_request, waiting } = await store.pipelines.get(id);
  const filter = { lane: "write", ...(asked !== undefined && { run_request: asked }) } as const;
  const { items } = await store.runs.list(id, { limit: 1 }, filter);
  const over = (asked !== undefined && asked < run_request) || isAtRest(status);
  return { id, name, status, enabled, run_request: asked ?? run_request, waiting, over, last_run: items[0] ?? null };
}

const reloadSchema = z.object({
  pipeline: pipelineSchema,
  run_id: z.guid().nullable().describe("The run under way; null where none is, then the next run uses everything."),
  applied_version: z.int().nullable().describe("The newest version that the run under way has taken up."),
  pending_fields: z.array(z.string()).describe("Changed since; the run takes them up with its next batch."),
});

const reloadPipelineConfig = {
  tags: ["pipelines"],
  operationId: "reloadPipelineConfig",
  summary: "Have the run take up the changed configuration",
  description:
    "A run takes up batch_size, max_rejects and max_delete_percent between two batches, by itself: every commit brings them back. So there is nothing to trigger; the answer tells how far it is.",
  params: idParams,
  response: { 200: answer("What the run under way works with.", reloadSchema), ...problems(404) },
};

export function reloadConfigRoute(api: Api, { store }: ApiParts): void {
  const route = { schema: reloadPipelineConfig, config: { keepAnswer: false } };
  api.post("/pipelines/:id/reload-config", route, async ({ params }) => {
    const pipeline = await store.pipelines.get(params.id);
    const { id, config_version, status } = pipeline;
    const [run] = isHeld(status)
      ? (await store.runs.list(id, { limit: 1 }, { lane: "write", status: "RUNNING" })).items
      : [];
    if (run === undefined) return { pipeline, run_id: null, applied_version: null, pending_fields: [] };
    const [applied, current] = await Promise.all([
      store.versions.get(id, run.applied_version),
      store.versions.get(id, config_version),
    ]);
    return {
      pipeline,
      run_id: run.id,
      applied_version: run.applied_version,
      pending_fields: changesBetween(applied, current).map(({ field }) => field),
    };
  });
}
