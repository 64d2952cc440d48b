import { z } from "zod";
import type { Api, ApiParts } from "../api.ts";
import { problems } from "../problem.ts";
import { type EventFeed, EventStream } from "./event-feed.ts";

const watchEvents = {
  tags: ["events"],
  operationId: "watchEvents",
  summary: "Watch pipelines and runs as they change",
  description:
    "Server-sent events: `pipeline` (its status, whether it is enabled, its version) and `run` (the run with its counters, about once a second while it goes on). Each carries the latest state; steps in between may be left out. After a lost connection Last-Event-ID brings everything that changed since, some of it perhaps twice; `reset` instead of `ready` means that this was not possible, and that the lists must be read again. To miss nothing at the beginning, open the stream first and read the lists then. A deleted pipeline sends nothing.",
  querystring: z.strictObject({
    pipeline: z.string().min(1).max(63).optional().describe("Only this pipeline, by its id or name."),
  }),
  response: {
    200: {
      description: "Events until one side hangs up.",
      content: { "text/event-stream": { schema: z.string() } },
    },
    ...problems(404, 422, 429),
  },
};

export function eventRoutes(api: Api, { store }: ApiParts, feed: EventFeed): void {
  api.get("/events", { schema: watchEvents }, async (request, reply) => {
    const { pipeline } = request.query;
    const pipelineId = pipeline === undefined ? null : (await store.pipelines.get(pipeline)).id;
    const stream = new EventStream(pipelineId);
    const { "last-event-id": lastEventId } = request.headers;
    await feed.open(stream, typeof lastEventId === "string" ? lastEventId : undefined);
    reply.type("text/event-stream").header("cache-control", "no-store").header("x-accel-buffering", "no");
    return reply.send(stream.output as never);
  });
}
