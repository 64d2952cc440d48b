import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineConfig } from "../../domain/pipeline.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import type { Api, ApiParts } from "../api.ts";
import type { Limited } from "../concurrency-limit.ts";
import { operations, type PreviewAnswer } from "./operations.ts";
import { type PreviewQuestion, previewRows } from "./preview.ts";

export function previewRoutes(api: Api, parts: ApiParts, limited: Limited): void {
  const show = async (question: PreviewQuestion, reply: FastifyReply): Promise<PreviewAnswer | undefined> => {
    const gone = whenGone(reply.raw);
    try {
      return await limited(() => previewRows(parts, question, gone));
    } catch (error) {
      if (!gone.aborted) throw error;
      reply.hijack();
      return undefined;
    }
  };

  // Rows of the source are shown, and kept nowhere.
  const config = { keepAnswer: false };
  api.post("/preview", { schema: operations.previewQuery, config }, ({ body }, reply) => {
    const { source_query: query, limit, ...source } = body;
    return show({ query, source, limit }, reply);
  });

  api.post("/pipelines/:id/preview", { schema: operations.previewPipeline, config }, async (request, reply) => {
    const {
      params,
      query: { limit },
      body: trial,
    } = request;
    const pipeline = { ...(await parts.store.pipelines.get(params.id)), ...trial } as Pipeline;
    return show({ query: readerQuery(pipeline, parts), source: pipeline, limit }, reply);
  });
}

function readerQuery(config: PipelineConfig, { targets }: ApiParts): string {
  const { reader } = inspectTaskPlan(config, targets);
  if (reader === undefined) throw new VitrinaError("TASK_PLAN_INVALID", "The pipeline does not begin with a query.");
  return reader.query;
}

/** Aborts when the client closes its connection before it has its answer. */
function whenGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}
