import { z } from "zod";
import { LINE_LEVELS } from "../../domain/log-level.ts";
import { RUN_KINDS, RUN_STATUSES, RUN_TRIGGERS, runSchema } from "../../domain/run.ts";
import { runLogLineSchema } from "../../domain/run-log.ts";
import type { Api, ApiParts } from "../api.ts";
import { type ChangeListener, waitSchema, waitUntil } from "../changes/change-listener.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery, wholeNumber } from "../parameters.ts";
import { problems } from "../problem.ts";

const tags = ["runs"];

const moment = z.iso
  .datetime({ offset: true, error: "It must be a time with its zone, such as 2026-01-31T12:00:00Z." })
  .transform((text) => new Date(text));

const listQuery = pageQuery.extend({
  kind: z.enum(RUN_KINDS).optional().describe("Only runs of this kind."),
  status: z.enum(RUN_STATUSES).optional().describe("Only runs of this status."),
  trigger: z.enum(RUN_TRIGGERS).optional().describe("Only runs that were asked for like this."),
  started_after: moment.optional().describe("Only runs that started later than this."),
  started_before: moment.optional().describe("Only runs that started earlier than this."),
});

const aPage = answer("A page of runs.", pageOf(runSchema));

const operations = {
  listAllRuns: {
    tags,
    operationId: "listAllRuns",
    summary: "List the runs of all pipelines, newest first",
    querystring: listQuery,
    response: { 200: aPage, ...problems(422) },
  },
  listRuns: {
    tags,
    operationId: "listRuns",
    summary: "List the runs of a pipeline, newest first",
    params: idParams,
    querystring: listQuery.extend({
      run_request: wholeNumber(0, 2_000_000_000).optional().describe("Only runs of this request."),
    }),
    response: { 200: aPage, ...problems(404, 422) },
  },
  getRun: {
    tags,
    operationId: "getRun",
    summary: "Read a run",
    params: idParams.extend({ run_id: z.string().min(1).describe("The id of the run.") }),
    querystring: z.strictObject({
      wait: waitSchema.default(0).describe("Wait at most so long, up to 60s, until the run has ended."),
    }),
    response: { 200: answer("The run.", runSchema), ...problems(404, 422) },
  },
};

export function runRoutes(api: Api, { store }: ApiParts, listener: ChangeListener): void {
  api.get("/runs", { schema: operations.listAllRuns }, ({ query: { limit, after, ...filter } }) =>
    store.runs.list(null, { limit, after }, filter),
  );

  api.get("/pipelines/:id/runs", { schema: operations.listRuns }, async ({ params, query }) => {
    const { id } = await store.pipelines.get(params.id);
    const { limit, after, ...filter } = query;
    return store.runs.list(id, { limit, after }, filter);
  });

  api.get("/pipelines/:id/runs/:run_id", { schema: operations.getRun }, async ({ params, query }, reply) => {
    const { id } = await store.pipelines.get(params.id);
    return waitUntil({
      listener,
      pipelineId: id,
      waitMs: query.wait,
      reply,
      look: () => store.runs.get(id, params.run_id),
      isOver: ({ status }) => status !== "REQUESTED" && status !== "RUNNING",
    });
  });

  runLogRoute(api, store, listener);
}

/** Lines send no notification, and are written about once a second. */
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
    level: z.enum(LINE_LEVELS).optional().describe("Only lines of this level or more severe."),
    wait: waitSchema.default(0).describe("Wait at most so long, up to 60s, until there is a line or the log is over."),
  }),
  response: { 200: answer("A page of the log.", runLogSchema), ...problems(404, 422) },
};

function runLogRoute(api: Api, store: ApiParts["store"], listener: ChangeListener): void {
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
