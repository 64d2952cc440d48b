import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { SourceRef } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import {
  type Pipeline,
  type PipelineConfig,
  pipelineConfigSchema,
  pipelineTrialSchema,
} from "../../domain/pipeline.ts";
import { READER_LACKS_RIGHT } from "../../domain/reader-rights.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import type { Api, ApiParts } from "../api.ts";
import type { Limited } from "../concurrency-limit.ts";
import { answer } from "../openapi.ts";
import { idParams, wholeNumber } from "../parameters.ts";
import { problems } from "../problem.ts";
import { columnSchema } from "../validate/operations.ts";

const tags = ["trying out"];

const limit = wholeNumber(1, 200).default(20).describe("At most this many rows.");

const previewSchema = z.object({
  columns: z.array(columnSchema),
  rows: z.array(z.array(z.string().nullable())).describe("Every value as the exact text of PostgreSQL, or null."),
  cut: z
    .array(z.object({ row: z.int(), column: z.int() }))
    .describe("The values that are longer than shown here, counted from 0."),
  complete: z.boolean().describe("False when there are more rows than shown."),
});

type PreviewAnswer = z.infer<typeof previewSchema>;

const theRows = answer("The first rows, in no particular order.", previewSchema);
const what = "Runs the query read-only, with a time limit and size limits.";

const operations = {
  previewQuery: {
    tags,
    operationId: "previewQuery",
    summary: "Show the first rows of a query",
    description: what,
    body: z.strictObject({
      source_query: pipelineConfigSchema.shape.source_query.unwrap(),
      source_type: pipelineConfigSchema.shape.source_type,
      source_connection: pipelineConfigSchema.shape.source_connection,
      limit,
    }),
    response: { 200: theRows, ...problems(400, 413, 415, 422, 429) },
  },
  previewPipeline: {
    tags,
    operationId: "previewPipeline",
    summary: "Show the first rows that a pipeline would read",
    description: `${what} They are the rows of its query, before any code task. With a body, the fields in it are tried out in place of the stored ones.`,
    params: idParams,
    querystring: z.strictObject({ limit }),
    body: pipelineTrialSchema.nullish(),
    response: { 200: theRows, ...problems(400, 404, 413, 415, 422, 429) },
  },
};

export function previewRoutes(api: Api, parts: ApiParts, limited: Limited): void {
  const show = async (question: PreviewQuestion, reply: FastifyReply): Promise<PreviewAnswer | undefined> => {
    const gone = whenGone(reply.raw);
    try {
      return await limited(() => previewRows(parts, question, gone));
    } catch (error) {
      if (!gone.aborted) throw error;
      reply.hijack();
      return undefined;
    }
  };

  // Rows of the source are shown, and kept nowhere.
  const config = { keepAnswer: false };
  api.post("/preview", { schema: operations.previewQuery, config }, ({ body }, reply) => {
    const { source_query: query, limit, ...source } = body;
    return show({ query, source, limit }, reply);
  });

  api.post("/pipelines/:id/preview", { schema: operations.previewPipeline, config }, async (request, reply) => {
    const {
      params,
      query: { limit },
      body: trial,
    } = request;
    const pipeline = { ...(await parts.store.pipelines.get(params.id)), ...trial } as Pipeline;
    return show({ query: readerQuery(pipeline, parts), source: pipeline, limit }, reply);
  });
}

function readerQuery(config: PipelineConfig, { targets }: ApiParts): string {
  const { reader } = inspectTaskPlan(config, targets);
  if (reader === undefined) throw new VitrinaError("TASK_PLAN_INVALID", "The pipeline does not begin with a query.");
  return reader.query;
}

/** Aborts when the client closes its connection before it has its answer. */
function whenGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** Enough to recognise a value; the whole of it is in the source. */
const MAX_CELL_CHARACTERS = 1000;
const MAX_PREVIEW_BYTES = 1024 * 1024;

interface PreviewQuestion {
  readonly query: string;
  readonly source: SourceRef;
  readonly limit: number;
}

/** Through every layer of the guard, as a run would be. */
async function previewRows(
  { inspector, previewTimeoutMs }: Pick<ApiParts, "inspector" | "previewTimeoutMs">,
  { query, source: of, limit }: PreviewQuestion,
  signal: AbortSignal,
): Promise<PreviewAnswer> {
  await inspector.checkQuery(of, query);
  const source = await inspector.source(of);
  const limits = { timeoutMs: previewTimeoutMs, maxCellCharacters: MAX_CELL_CHARACTERS, maxBytes: MAX_PREVIEW_BYTES };
  try {
    const { columns, rows, cut, complete } = await source.preview({ query, limit, ...limits }, signal);
    return { columns: [...columns], rows: rows.map((row) => [...row]), cut: [...cut], complete };
  } catch (error) {
    throw asFaultOfQuery(error, previewTimeoutMs);
  } finally {
    await source.close();
  }
}

/** What the source does not allow, or takes too long for, is the query's fault here, not Vitrina's. */
function asFaultOfQuery(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof VitrinaError)) return error;
  switch (error.code) {
    case "DATABASE_BUSY":
    case "STATEMENT_TIMEOUT":
      return new VitrinaError("QUERY_TOO_SLOW", `The query gave no rows within ${timeoutMs / 1000} s.`, {
        cause: error,
      });
    case "PERMISSION_DENIED":
      return new VitrinaError("SOURCE_QUERY_FAILED", error.message, {
        cause: error,
        hint: READER_LACKS_RIGHT,
      });
    default:
      return error;
  }
}
