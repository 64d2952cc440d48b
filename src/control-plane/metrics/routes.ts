import type { Registry } from "prom-client";
import { z } from "zod";
import type { Api } from "../api.ts";
import { problems } from "../problem.ts";
import type { PipelineGauges } from "./pipeline-gauges.ts";

const getMetrics = {
  tags: ["health"],
  operationId: "getMetrics",
  summary: "Metrics for Prometheus",
  response: {
    200: { description: "In the text format of Prometheus.", content: { "text/plain": { schema: z.string() } } },
    ...problems(503),
  },
};

export function metricsRoutes(api: Api, registry: Registry, gauges: PipelineGauges): void {
  api.get("/metrics", { schema: getMetrics }, async (_, reply) => {
    await gauges.refresh();
    const text = await registry.metrics();
    return reply
      .type(registry.contentType)
      .serializer(String)
      .send(text as never);
  });
}
