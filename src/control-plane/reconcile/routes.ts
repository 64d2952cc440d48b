import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { reconcileSchema } from "../../domain/reconcile.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery } from "../parameters.ts";
import { problems } from "../problem.ts";

const tags = ["reconcile"];

const operations = {
  requestReconcile: {
    tags,
    operationId: "requestReconcile",
    summary: "Compare source and target",
    description:
      "A runner compares them; the header Location of the answer is where the result will be. Both sides are only read, and the pipeline may run meanwhile. Asking again while one waits or runs gives that one.",
    params: idParams,
    response: { 202: answer("The reconcile that waits or runs.", reconcileSchema), ...problems(404) },
  },
  getLastReconcile: {
    tags,
    operationId: "getLastReconcile",
    summary: "Read the last reconcile of a pipeline",
    description: "The newest one, also while it waits or runs. Nothing is compared by asking: POST does that.",
    params: idParams,
    response: { 200: answer("The last reconcile.", reconcileSchema), ...problems(404) },
  },
  listReconciles: {
    tags,
    operationId: "listReconciles",
    summary: "List the reconciles of a pipeline, newest first",
    params: idParams,
    querystring: pageQuery,
    response: { 200: answer("A page of reconciles.", pageOf(reconcileSchema)), ...problems(404, 422) },
  },
  getReconcile: {
    tags,
    operationId: "getReconcile",
    summary: "Read a reconcile and its report",
    params: idParams.extend({ reconcile_id: z.string().min(1).describe("The id of the reconcile.") }),
    response: { 200: answer("The reconcile.", reconcileSchema), ...problems(404) },
  },
};

export function reconcileRoutes(api: Api, { store }: ApiParts): void {
  api.post("/pipelines/:id/reconcile", { schema: operations.requestReconcile }, async (request, reply) => {
    const { id } = await store.pipelines.get(request.params.id);
    const reconcile = await store.reconciles.request(id, actorOf(request).name);
    const location = `/api/v1/pipelines/${id}/reconciles/${reconcile.id}`;
    return reply.code(202).header("location", location).send(reconcile);
  });

  api.get("/pipelines/:id/reconcile", { schema: operations.getLastReconcile }, async ({ params }) => {
    const { id, name } = await store.pipelines.get(params.id);
    const [last] = (await store.reconciles.list(id, { limit: 1 })).items;
    if (last !== undefined) return last;
    throw new VitrinaError("RECONCILE_NOT_FOUND", `Source and target of ${name} were never compared.`, {
      hint: "POST to the same path compares them.",
    });
  });

  api.get("/pipelines/:id/reconciles", { schema: operations.listReconciles }, async ({ params, query }) => {
    const { id } = await store.pipelines.get(params.id);
    return store.reconciles.list(id, query);
  });

  api.get("/pipelines/:id/reconciles/:reconcile_id", { schema: operations.getReconcile }, async ({ params }) => {
    const { id } = await store.pipelines.get(params.id);
    return store.reconciles.get(id, params.reconcile_id);
  });
}
