import { z } from "zod";
import { pipelineConfigSchema, pipelineTrialSchema } from "../../domain/pipeline.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { problems } from "../problem.ts";
import { columnSchema } from "../validate/operations.ts";

const tags = ["trying out"];

const limit = z.coerce.number().int().min(1).max(200).default(20).describe("At most this many rows.");

const previewSchema = z.object({
  columns: z.array(columnSchema),
  rows: z.array(z.array(z.string().nullable())).describe("Every value as the exact text of PostgreSQL, or null."),
  cut: z
    .array(z.object({ row: z.int(), column: z.int() }))
    .describe("The values that are longer than shown here, counted from 0."),
  complete: z.boolean().describe("False when there are more rows than shown."),
});

export type PreviewAnswer = z.infer<typeof previewSchema>;

const theRows = answer("The first rows, in no particular order.", previewSchema);
const what = "Runs the query read-only, with a time limit and size limits.";

export const operations = {
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
