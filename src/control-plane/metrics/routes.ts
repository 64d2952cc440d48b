import { Counter, Histogram, type Registry } from "prom-client";
import { z } from "zod";
import type { Api } from "../api.ts";
import { problems } from "../problem.ts";
import type { FollowGauges } from "./follow-gauges.ts";
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

/** Everything that is looked up for a scrape. */
export interface ScrapedGauges {
  readonly ofPipelines: PipelineGauges;
  readonly ofFollowing: FollowGauges;
}

export function metricsRoutes(api: Api, registry: Registry, { ofPipelines, ofFollowing }: ScrapedGauges): void {
  api.get("/metrics", { schema: getMetrics }, async (_, reply) => {
    ofFollowing.refresh();
    await ofPipelines.refresh();
    const text = await registry.metrics();
    return reply
      .type(registry.contentType)
      .serializer(String)
      .send(text as never);
  });
}

/** In seconds, chosen to tell a query to the meta-store from one to a source, and both from a long wait. */
const DURATION_BUCKETS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];

/** By the route, not the path: ids in labels would grow without end. */
export function countRequests(api: Api, registry: Registry): void {
  const requests = new Counter({
    name: "vitrina_http_requests_total",
    help: "Requests that were answered.",
    labelNames: ["method", "route", "status"],
    registers: [registry],
  });
  const durations = new Histogram({
    name: "vitrina_http_request_duration_seconds",
    help: "How long answers took, waiting included.",
    labelNames: ["method", "route"],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  api.addHook("onResponse", async (request, reply) => {
    const isKnown = !request.is404 && reply.statusCode !== 405;
    const method = isKnown ? request.method : "other";
    const route = (isKnown && request.routeOptions.url?.replace(/^\/api\/v1/, "")) || "none";
    requests.inc({ method, route, status: String(reply.statusCode) });
    durations.observe({ method, route }, reply.elapsedTime / 1000);
  });
}
