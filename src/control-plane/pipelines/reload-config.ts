import { z } from "zod";
import { pipelineSchema } from "../../domain/pipeline.ts";
import { isHeld } from "../../domain/pipeline-status.ts";
import { changesBetween } from "../../domain/pipeline-version.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { problems } from "../problem.ts";
import { idParams } from "./id-params.ts";

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
    const [run] = isHeld(status) ? (await store.runs.list(id, { limit: 1 }, { status: "RUNNING" })).items : [];
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
