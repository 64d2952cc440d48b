import { z } from "zod";
import { runSchema } from "../../domain/run.ts";
import { problemSchema } from "../error-handler.ts";
import { pageOf, pageQuery } from "../paging.ts";
import type { Api, ApiParts } from "../server.ts";

const idParams = z.object({ id: z.string().min(1).max(100).describe("The id or the name of the pipeline.") });
const runParams = idParams.extend({ run_id: z.string().min(1).max(100) });

export function runRoutes({ store }: ApiParts, hide: boolean) {
  const tags = ["runs"];
  const problems = { "4xx": problemSchema };

  return async (api: Api): Promise<void> => {
    api.get(
      "/pipelines/:id/runs",
      {
        schema: {
          hide,
          tags,
          summary: "List runs, newest first",
          params: idParams,
          querystring: pageQuery,
          response: { 200: pageOf(runSchema), ...problems },
        },
      },
      async ({ params, query }) => store.listRuns((await store.getPipeline(params.id)).id, query),
    );

    api.get(
      "/pipelines/:id/runs/:run_id",
      { schema: { hide, tags, summary: "Read a run", params: runParams, response: { 200: runSchema, ...problems } } },
      async ({ params }) => store.getRun((await store.getPipeline(params.id)).id, params.run_id),
    );
  };
}
