import { z } from "zod";
import { newPipelineSchema, pipelineTrialSchema } from "../../domain/pipeline.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { problems } from "../problem.ts";
import { findingSchema } from "./findings.ts";

const tags = ["trying out"];

export const columnSchema = z.object({
  name: z.string(),
  type: z.string().describe("As SQL writes it: numeric(3,1)."),
});

const targetSchema = z.object({
  table: z.string(),
  exists: z.boolean().nullable(),
  key: z.array(z.string()).nullable().describe("target_key, or the primary key of the table."),
  will_create: z.boolean().nullable(),
  missing_columns: z.array(columnSchema).nullable().describe("What the query has and the table has not."),
  extra_columns: z.array(z.string()).nullable().describe("What the table has and the query has not."),
  note: z.string().nullable().describe("Why something is not known."),
});

const readingSchema = z.object({
  strategy: z
    .enum(["keyset", "single_scan"])
    .nullable()
    .describe("keyset: each batch by a statement of its own. single_scan: one statement for the whole run."),
  explanation: z.string(),
  data_path: z.string().nullable().describe("As the run is going to record it: push-down, stream or rows."),
  order_by: z.array(z.string()),
  index_advice: z.string().nullable().describe("An index that would help, as SQL or in words."),
});

const validationSchema = z.object({
  valid: z.boolean().describe("No problem is an error."),
  problems: z.array(findingSchema),
  columns: z.array(columnSchema).nullable().describe("Of the query; null when it cannot be described."),
  target: targetSchema.nullable(),
  reading: readingSchema.nullable().describe("Null when the problems leave it open."),
  writing: z.object({ strategy: z.string().describe("As the run is going to record it.") }).nullable(),
  unseen_tables: z
    .array(z.string())
    .nullable()
    .describe(
      "Incremental mode: tables that the query reads, but whose changes do not move incremental_key, so that no run notices them. Null in full mode, or when it could not be told.",
    ),
  notes: z.array(z.string()).describe("What no check can find out, and what to do where it matters."),
  estimated_rows: z
    .int()
    .nullable()
    .describe("How many rows the next run reads, as the planner guesses; incremental: from where it is now."),
});
export type Validation = z.infer<typeof validationSchema>;

const theValidation = answer("Every problem at once, and what a run would do.", validationSchema);
const what =
  "Changes nothing. The source only plans the query and answers short questions about it; what takes too long is left out, and said.";

export const operations = {
  validatePipeline: {
    tags,
    operationId: "validatePipeline",
    summary: "Validate a pipeline, or a change of it",
    description: `${what} With a body, the fields in it are tried out in place of the stored ones, which needs the role editor.`,
    params: idParams,
    body: pipelineTrialSchema.nullish(),
    response: { 200: theValidation, ...problems(400, 404, 413, 415, 422, 429) },
  },
  validateConfiguration: {
    tags,
    operationId: "validateConfiguration",
    summary: "Validate a configuration before it is stored",
    description: what,
    body: newPipelineSchema,
    response: { 200: theValidation, ...problems(400, 413, 415, 422, 429) },
  },
};
