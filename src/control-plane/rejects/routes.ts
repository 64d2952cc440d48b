import { z } from "zod";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { rejectSchema } from "../../domain/reject.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery } from "../parameters.ts";
import { logStatusChange } from "../pipelines/answer.ts";
import { problems } from "../problem.ts";

const tags = ["rejects"];
const params = idParams;

const ids = z.array(z.int().positive()).min(1, "Name at least one reject.").max(1000).describe("The ids of rejects.");

const operations = {
  listRejects: {
    tags,
    operationId: "listRejects",
    summary: "List the rows that the target refused, newest first",
    params,
    querystring: pageQuery.extend({ run_id: z.string().max(100).optional().describe("Only those of this run.") }),
    response: { 200: answer("A page of rejected rows.", pageOf(rejectSchema)), ...problems(404, 422) },
  },
  retryRejects: {
    tags,
    operationId: "retryRejects",
    summary: "Try rejected rows again",
    description:
      "Marks them and requests a run, which first reads their keys from the source again. A row that is written, or gone from the source, is a reject no more; one that is refused again stays, with the new reason. If a run is under way, the next one does it. A full load reads everything anyway.",
    params,
    body: z.strictObject({ ids: ids.optional() }).nullable().describe("Without ids: all of them."),
    response: {
      200: answer(
        "How many are tried again, and the status of the pipeline.",
        z.object({ retried: z.int(), pipeline_status: z.enum(PIPELINE_STATUSES) }),
      ),
      ...problems(400, 404, 409, 413, 415, 422),
    },
  },
  discardRejects: {
    tags,
    operationId: "discardRejects",
    summary: "Forget rejected rows",
    description: "The target stays as it is.",
    params,
    body: z
      .strictObject({ ids: ids.optional(), all: z.literal(true).optional() })
      .refine((body) => (body.ids === undefined) !== (body.all === undefined), "Give either ids, or all: true."),
    response: {
      200: answer("How many were forgotten.", z.object({ discarded: z.int() })),
      ...problems(400, 404, 413, 415, 422),
    },
  },
};

export function rejectRoutes(api: Api, { store, log }: ApiParts): void {
  api.get("/pipelines/:id/rejects", { schema: operations.listRejects }, async ({ params: { id: name }, query }) => {
    const { id } = await store.pipelines.get(name);
    const { run_id: runId, ...page } = query;
    return store.rejects.list(id, { ...page, runId });
  });

  api.post("/pipelines/:id/rejects/retry", { schema: operations.retryRejects }, async (request) => {
    const before = await store.pipelines.get(request.params.id);
    const retried = await store.rejects.retry(before.id, request.body?.ids);
    const pipeline = await store.pipelines.get(before.id);
    logStatusChange(log, request, before, pipeline, "run requested");
    return { retried, pipeline_status: pipeline.status };
  });

  api.post(
    "/pipelines/:id/rejects/discard",
    { schema: operations.discardRejects },
    async ({ params: { id: name }, body }) => {
      const { id } = await store.pipelines.get(name);
      return { discarded: await store.rejects.discard(id, body.ids) };
    },
  );
}
