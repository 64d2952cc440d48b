import { z } from "zod";
import { runSchema } from "../../domain/run.ts";
import { answer } from "../openapi.ts";
import { pageOf, pageQuery } from "../paging.ts";
import { idParams } from "../pipelines/id-params.ts";
import { problems } from "../problem.ts";
import type { Api, ApiParts } from "../server.ts";

const tags = ["runs"];

const operations = {
  listRuns: {
    tags,
    operationId: "listRuns",
    summary: "List the runs of a pipeline, newest first",
    params: idParams,
    querystring: pageQuery,
    response: { 200: answer("A page of runs.", pageOf(runSchema)), ...problems(404, 422) },
  },
  getRun: {
    tags,
    operationId: "getRun",
    summary: "Read a run",
    params: idParams.extend({ run_id: z.string().min(1).describe("The id of the run.") }),
    response: { 200: answer("The run.", runSchema), ...problems(404) },
  },
};

export function runRoutes(api: Api, { store }: ApiParts): void {
  api.get("/pipelines/:id/runs", { schema: operations.listRuns }, async ({ params, query }) => {
    const { id } = await store.getPipeline(params.id);
    return store.listRuns(id, query);
  });

  api.get("/pipelines/:id/runs/:run_id", { schema: operations.getRun }, async ({ params }) => {
    const { id } = await store.getPipeline(params.id);
    return store.getRun(id, params.run_id);
  });
}
