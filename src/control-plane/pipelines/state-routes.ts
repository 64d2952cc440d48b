import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import { isHeld } from "../../domain/pipeline-status.ts";
import type { Watermark } from "../../domain/watermark.ts";
import type { PipelineState } from "../../meta-store/ports/state.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { problems } from "../problem.ts";
import { invalidRequest } from "../validation.ts";

/** Where a pipeline is, and how a person moves it. Each move must be confirmed: it decides what is read again. */

const tags = ["pipelines"];
const params = idParams;

const stateSchema = z.object({
  pipeline_id: z.guid(),
  last_processed_value: z.string().nullable().describe("Of incremental_key; in mode full always null."),
  last_processed_id: z
    .string()
    .nullable()
    .describe("Of incremental_id_key; in mode full the key of the last row that was processed."),
  scan_position: z.array(z.string()).nullable().describe("Key of the last row of a load that has not ended."),
  batches_committed: z.int(),
  updated_at: z.date().nullable().describe("Null before the first batch."),
});

const theState = answer("Where the pipeline is now.", stateSchema);

const positionSchema = z.strictObject({
  last_processed_value: z.string().max(1000).describe("A value of incremental_key, as PostgreSQL prints it."),
  last_processed_id: z
    .string()
    .max(1000)
    .nullable()
    .default(null)
    .describe("A value of incremental_id_key: that row itself counts as read. Null: all rows of the value are read."),
});

const confirmQuery = z.strictObject({
  confirm: z
    .enum(["true", "false"])
    .default("false")
    .describe("Without it the answer is 409, and says what would happen."),
});

const operations = {
  getPipelineState: {
    tags,
    operationId: "getPipelineState",
    summary: "Read the checkpoint",
    params,
    response: { 200: answer("How far the pipeline has come.", stateSchema), ...problems(404) },
  },
  resetPipelineState: {
    tags,
    operationId: "resetPipelineState",
    summary: "Forget where the pipeline is",
    description: "The next run reads everything. The target keeps its data.",
    params,
    querystring: confirmQuery,
    response: { 200: theState, ...problems(404, 409, 422) },
  },
  keepPipelineState: {
    tags,
    operationId: "keepPipelineState",
    summary: "Keep the checkpoint although the query or the target has changed",
    description:
      "For a change that leaves the old position right, such as a further column, or a target that was restored with all its rows. Rows before it are not read again.",
    params,
    querystring: confirmQuery,
    response: { 200: theState, ...problems(404, 409, 422) },
  },
  setPipelineState: {
    tags,
    operationId: "setPipelineState",
    summary: "Set where the next incremental run begins",
    description:
      "Only for incremental pipelines. The values are compared with their columns when the next run begins, which fails if they do not fit.",
    params,
    querystring: confirmQuery,
    body: positionSchema,
    response: { 200: theState, ...problems(400, 404, 409, 413, 415, 422) },
  },
};

export function stateRoutes(api: Api, { store }: ApiParts): void {
  const current = async (id: PipelineId) => stateAnswer(id, await store.state.get(id));

  api.get("/pipelines/:id/state", { schema: operations.getPipelineState }, async ({ params }) => {
    const { id } = await store.pipelines.get(params.id);
    return current(id);
  });

  api.post("/pipelines/:id/state/reset", { schema: operations.resetPipelineState }, async ({ params, query }) => {
    const pipeline = await movable(params.id);
    requireConfirmation(query, meaningOfReset(pipeline, await store.state.get(pipeline.id)));
    await store.state.reset(pipeline.id);
    return current(pipeline.id);
  });

  api.post("/pipelines/:id/state/keep", { schema: operations.keepPipelineState }, async ({ params, query }) => {
    const pipeline = await movable(params.id);
    requireConfirmation(query, meaningOfKeep(pipeline, await store.state.get(pipeline.id)));
    await store.state.keep(pipeline.id);
    return current(pipeline.id);
  });

  api.post("/pipelines/:id/state/set", { schema: operations.setPipelineState }, async ({ params, query, body }) => {
    const pipeline = await movable(params.id);
    const position = { value: body.last_processed_value, id: body.last_processed_id };
    requireSettable(pipeline, position);
    requireConfirmation(query, meaningOfSet(pipeline, await store.state.get(pipeline.id), position));
    await store.state.set(pipeline.id, position);
    return current(pipeline.id);
  });

  /** Checked before the confirmation: nobody should confirm what is then refused. The store checks again, locked. */
  async function movable(id: string): Promise<Pipeline> {
    const pipeline = await store.pipelines.get(id);
    const { name, status } = pipeline;
    if (!isHeld(status)) return pipeline;
    const detail = `${name} is ${status}: its state cannot change while a runner holds it.`;
    throw new VitrinaError("STATUS_CONFLICT", detail, {
      extra: { pipeline_status: status },
      hint: "Pause it first, or wait until its run has ended.",
    });
  }
}

/** `meaning` says exactly what will happen: a person confirms a sentence, not a word. */
function requireConfirmation({ confirm }: z.infer<typeof confirmQuery>, meaning: string): void {
  if (confirm === "true") return;
  throw new VitrinaError("CONFIRMATION_NEEDED", `${meaning} Nothing has been changed yet.`);
}

function requireSettable({ name, mode, incremental_id_key }: Pipeline, position: Watermark): void {
  if (mode !== "incremental") {
    const reads = mode === "full" ? "reads everything in every run" : "follows every change of its source";
    throw new VitrinaError("STATE_NOT_SETTABLE", `${name} ${reads} (mode ${mode}).`);
  }
  if (position.id !== null && incremental_id_key === null) {
    const message = "The pipeline has no incremental_id_key that this could be a value of.";
    throw invalidRequest("body", [{ pointer: "/last_processed_id", message }]);
  }
}

function meaningOfReset({ name, target_table }: Pipeline, state: PipelineState): string {
  return `${name} forgets its position (${positionOf(state)}); its next run reads everything. ${target_table} keeps its data until then.`;
}

function meaningOfKeep({ name, target_table }: Pipeline, state: PipelineState): string {
  const unfinished = state.scanPosition === null ? "" : " What its unfinished load has read so far is read again.";
  return `${name} keeps its position (${positionOf(state)}) although its configuration or its target has changed: rows before it are not read again.${unfinished} ${target_table} keeps its data.`;
}

function meaningOfSet(pipeline: Pipeline, state: PipelineState, position: Watermark): string {
  const { name, incremental_key, target_table } = pipeline;
  const from = position.id === null ? `is ${quoted(position)} or later` : `comes after ${quoted(position)}`;
  return `${name} forgets its position (${positionOf(state)}); its next run reads the rows whose ${incremental_key} ${from}. Earlier rows are not read again, and ${target_table} keeps its data.`;
}

function positionOf({ watermark, scanPosition }: PipelineState): string {
  const parts = [
    ...(watermark.value === null ? [] : [quoted(watermark)]),
    ...(scanPosition === null ? [] : [`an unfinished load at ${scanPosition.map((part) => `"${part}"`).join(", ")}`]),
  ];
  return parts.length === 0 ? "none yet" : parts.join(", and ");
}

function quoted({ value, id }: Watermark): string {
  return id === null ? `"${value}"` : `"${value}", id "${id}"`;
}

function stateAnswer(id: PipelineId, state: PipelineState) {
  // A position that still waits for older transactions was processed all the same.
  const { value, id: lastId } =
    state.progress.value === null && state.candidate !== null ? state.candidate : state.progress;
  return {
    pipeline_id: id,
    last_processed_value: value,
    last_processed_id: lastId,
    scan_position: state.scanPosition === null ? null : [...state.scanPosition],
    batches_committed: state.batchNo,
    updated_at: state.updatedAt,
  };
}
