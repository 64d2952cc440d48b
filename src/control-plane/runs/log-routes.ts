import { z } from "zod";
import { LINE_LEVELS } from "../../domain/log-level.ts";
import { RUN_STATUSES } from "../../domain/run.ts";
import { runLogLineSchema } from "../../domain/run-log.ts";
import type { Api, ApiParts } from "../api.ts";
import { type ChangeListener, waitSchema, waitUntil } from "../changes/change-listener.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery } from "../parameters.ts";
import { problems } from "../problem.ts";

/** Lines notify nobody, and are written about once a second. */
const LOOK_EVERY_MS = 1000;

const runLogSchema = pageOf(runLogLineSchema).extend({
  run_status: z.enum(RUN_STATUSES),
  over: z.boolean().describe("True when the run has ended and no more lines will come."),
});

const getRunLog = {
  tags: ["runs"],
  operationId: "getRunLog",
  summary: "Read the log of a run, oldest line first",
  description:
    "The first 1,000 lines and the last 100; a line in between tells how many were left out. They are written about once a second. To follow a run, ask with `wait` and, as `after`, the id of the last line you have, until `over` is true and `next` is null.",
  params: idParams.extend({ run_id: z.string().min(1).describe("The id of the run.") }),
  querystring: pageQuery.extend({
    after: z.string().max(100).optional().describe("The `next` of the page before, or the id of a line."),
    level: z.enum(LINE_LEVELS).optional().describe("Only lines of this level and graver ones."),
    wait: waitSchema.default(0).describe("Wait at most so long, up to 60s, until there is a line or the log is over."),
  }),
  response: { 200: answer("A page of the log.", runLogSchema), ...problems(404, 422) },
};

export function runLogRoutes(api: Api, { store }: ApiParts, listener: ChangeListener): void {
  api.get("/pipelines/:id/runs/:run_id/logs", { schema: getRunLog }, async ({ params, query }, reply) => {
    const { id } = await store.pipelines.get(params.id);
    const { wait, ...page } = query;
    return waitUntil({
      listener,
      pipelineId: id,
      waitMs: wait,
      lookEveryMs: LOOK_EVERY_MS,
      reply,
      look: () => store.runLogs.read(id, params.run_id, page),
      isOver: ({ items, over }) => items.length > 0 || over,
    });
  });
}
