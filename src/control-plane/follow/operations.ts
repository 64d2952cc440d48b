import { z } from "zod";
import { PIPELINE_MODES } from "../../domain/pipeline.ts";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { problems } from "../problem.ts";
import { columnSchema } from "../validate/operations.ts";

const tags = ["follow"];

const followedTableSchema = z.object({
  table: z.string(),
  on_change: z
    .enum(["keys", "everything", "ignore"])
    .describe("keys: those that the statement finds are computed again. everything: the whole mart is compared."),
  statement: z
    .string()
    .nullable()
    .describe(
      "Finds the keys that changes of the table concern. changed(t) stands for the rows of t that changed, as they were and as they are; old(t) for those that t had before.",
    ),
  recorded_columns: z.array(columnSchema).describe("The columns of a changed row that the source has to record."),
  read_columns: z.array(z.string()).describe("The columns that the query reads; a change of others changes no mart."),
  recording: z.enum(["recorded", "missing", "different"]).nullable().describe("Null: it could not be found out."),
  recording_problem: z.string().nullable().describe("What is different."),
  missing_indexes: z.array(z.string()).describe("SQL for the owner of the source."),
  whole_tables: z
    .array(z.string())
    .describe("Large tables that the statement reads as a whole without any index missing, and why, as sentences."),
});

const planSchema = z.object({
  pipeline: z.string(),
  mode: z.enum(PIPELINE_MODES).describe("Other than follow: this is how it would follow its source."),
  key: z.array(z.string()),
  tables: z.array(followedTableSchema),
  refusals: z.array(
    z.object({
      table: z.string().nullable(),
      message: z.string(),
      way_out: z.string().describe("What to do about it."),
      line: z.int().optional().describe("Where the table stands in the query, from 1; not where only a view reads it."),
      column: z.int().optional(),
    }),
  ),
  warnings: z.array(z.string()),
  query_for_keys: z
    .string()
    .nullable()
    .describe("The query as it is run for some keys, which stand as '…' here; null with refusals."),
});
export type PlanAnswer = z.infer<typeof planSchema>;

const statusSchema = z.object({
  pipeline: z.string(),
  connection: z.string(),
  status: z
    .enum(PIPELINE_STATUSES)
    .describe(
      "PAUSED: no change starts a run. FAILED: a change starts one a minute later if the trouble may pass, or if the source did not record its changes and does so again; another configuration starts one, too. Otherwise a person has to.",
    ),
  enabled: z.boolean().describe("False: no change starts a run."),
  following: z.boolean().describe("False: the next run compares everything."),
  position: z.string().nullable().describe("The snapshot of the source that is in the mart."),
  changes_waiting: z
    .int()
    .nullable()
    .describe("Recorded and not in the mart yet; null where the source could not be asked, or there is no position."),
  lag_seconds: z.number().nullable().describe("The age of the oldest of them; 0 when none waits."),
  last_round_at: z.date().nullable().describe("When the mart was last brought up to date."),
  last_compare_at: z.date().nullable().describe("When all of it was last compared."),
  compare_reason: z.string().nullable().describe("Why."),
  comparing: z.boolean().describe("True while a comparison of everything has begun and not ended."),
  last_sweep_at: z.date().nullable(),
  next_sweep_at: z.date().nullable(),
  sweep_parts: z.int().describe("In how many sweeps everything is compared."),
  swept_parts: z.int().describe("How many of them have passed; 0: everything was compared, or nothing yet."),
  repaired: z.int().describe("Rows that sweeps had to repair, over all."),
  last_repaired: z.int().describe("Those of the last sweep."),
  tables: z.array(z.string()).describe("Whose changes are followed."),
  slot: z
    .object({
      name: z.string(),
      kept_bytes: z.number().describe("The WAL that the source's server keeps for it."),
    })
    .nullable()
    .describe("Where changes come from a replication slot; null otherwise, or while the source does not answer."),
  note: z.string().nullable().describe("Why something is not known, or why no run begins yet."),
});
export type FollowStatusAnswer = z.infer<typeof statusSchema>;

/** A switch in the query of a request. */
const flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((text) => text === "true");

export const operations = {
  getFollowPlan: {
    tags,
    operationId: "getFollowPlan",
    summary: "Show how changes find their keys",
    description:
      "For each table of the query: the statement that finds the keys its changes concern, what has to be recorded, and the indexes that are missing. Also for a pipeline of another mode, as if it followed.",
    params: idParams,
    response: { 200: answer("The plan.", planSchema), ...problems(404, 422, 429) },
  },
  getFollowScript: {
    tags,
    operationId: "getFollowScript",
    summary: "Print what the owner of a source runs",
    description:
      "SQL that lets the source record the changes that all follow pipelines of this connection need, and no others. It can be run again. With `diff` it also stops recording the tables that no saved pipeline follows any more, unless a pipeline is left out. A pipeline that cannot be followed is left out; the first lines then say so, `-- Without NAME: why`.",
    params: z.object({ connection: z.string().min(1).max(31).describe("The source_connection of the pipelines.") }),
    querystring: z
      .strictObject({
        remove: flag.describe("Instead, take everything away."),
        diff: flag.describe("Instead, only what the source lacks or no longer needs."),
      })
      .refine(({ remove, diff }) => !(remove && diff), { path: ["diff"], message: "Ask for either diff or remove." }),
    response: {
      200: { description: "A script for psql.", content: { "text/plain": { schema: z.string() } } },
      ...problems(404, 422, 429),
    },
  },
  getFollowStatus: {
    tags,
    operationId: "getFollowStatus",
    summary: "Read how far a pipeline has followed its source",
    description: "Asks the source what waits.",
    params: idParams,
    response: { 200: answer("How far it has come.", statusSchema), ...problems(404, 422, 429) },
  },
};
