import type { Pipeline } from "../../domain/pipeline.ts";
import type { Api, ApiParts } from "../api.ts";
import { requireRole } from "../auth/route-access.ts";
import type { Limited } from "../concurrency-limit.ts";
import { storedPipeline, tellAllProblems } from "../pipelines/judge.ts";
import { operations } from "./operations.ts";
import { validate } from "./validate.ts";

export function validateRoutes(api: Api, parts: ApiParts, limited: Limited): void {
  const { store } = parts;
  const asItIsNow = { keepAnswer: false };
  const ofTrial = {
    schema: operations.validatePipeline,
    config: asItIsNow,
    preValidation: tellAllProblems(parts, operations.validatePipeline.body, (request) => {
      requireRole(request, "editor");
      return storedPipeline(parts)(request);
    }),
  };
  api.post("/pipelines/:id/validate", ofTrial, async (request) => {
    const { params, body: trial } = request;
    // What a query would find reveals data, so only those who may save one may try one out.
    if (trial != null && Object.keys(trial).length > 0) requireRole(request, "editor");
    const pipeline = await store.pipelines.get(params.id);
    const state = await store.state.get(pipeline.id);
    const config = { ...pipeline, ...trial } as Pipeline;
    return limited(() => validate(parts, { config, stored: { id: pipeline.id, state }, isTrial: trial != null }));
  });

  const schema = operations.validateConfiguration;
  const preValidation = tellAllProblems(parts, schema.body, async () => undefined);
  api.post("/validate", { schema, config: asItIsNow, preValidation }, ({ body: config }) =>
    limited(() => validate(parts, { config, stored: undefined, isTrial: false })),
  );
}
