import { z } from "zod";
import { followSchema } from "./follow.ts";
import { isHeld, PIPELINE_STATUSES, type PipelineStatus } from "./pipeline-status.ts";

/**
 * A pipeline and its configuration. One schema serves the API, the YAML files and the meta-store; field names are the
 * same everywhere (snake_case), so there is nothing to translate.
 */

export type PipelineId = string & { readonly __brand: "PipelineId" };
export type RunId = string & { readonly __brand: "RunId" };

const PIPELINE_TYPES = ["SQL", "PYTHON", "TYPESCRIPT"] as const;
export const PIPELINE_MODES = ["full", "incremental", "follow"] as const;

const UUID_SHAPE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Paths take either a name or a UUID, so it must be clear which one it is. */
export function isPipelineId(text: string): text is PipelineId {
  return UUID_SHAPE.test(text);
}

const name = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/,
    "A name starts with a letter and has up to 63 letters, digits, dots, dashes and underscores.",
  )
  .refine((text) => !isPipelineId(text), "A name must not look like an id.")
  .describe("Unique name; usable instead of the id in every path.");

export const columnName = z
  .string()
  .min(1, "A column name is not empty.")
  .refine((text) => Buffer.byteLength(text) <= 63, "A column name has at most 63 bytes.")
  .refine((text) => !text.includes("\0"), "A column name has no NUL character.");

const sqlText = z
  .string()
  .max(64 * 1024, "At most 64 KiB of SQL.")
  .refine((text) => !text.includes("\0"), "SQL has no NUL character.");

/** A task as it is configured; the contract between tasks is checked by `parseTaskPlan`. */
export const taskSchema = z.strictObject({
  order_index: z.int().describe("Position in the plan, from 1."),
  task_type: z.string().max(32).describe("SQL for the first task, then TYPESCRIPT or PYTHON."),
  body: sqlText.describe("The query, or the name of a registered task and its parameters as JSON."),
  source_table: z.string().max(200).nullable().default(null).describe("Must be null: the query names what is read."),
  target_table: z
    .string()
    .max(200)
    .nullable()
    .default(null)
    .describe("Only the last task may override the pipeline's target."),
});

/** Only the target's connector knows what is in it; here it is just an object. */
const targetOptionsSchema = z.record(z.string(), z.unknown());
export type TargetOptions = Readonly<z.infer<typeof targetOptionsSchema>>;

const fields = {
  name,
  description: z.string().max(2000).describe("What the pipeline is for."),
  type: z
    .enum(PIPELINE_TYPES)
    .describe("PYTHON or TYPESCRIPT: the plan must have a task in it. SQL: the query, whatever follows it."),
  source_type: z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, "A type has lower-case letters, digits and underscores."),
  source_connection: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,30}$/, "A connection name has lower-case letters, digits and underscores.")
    .describe("Name of the source connection; its address is in the runner's environment (SOURCE_<NAME>_URL)."),
  source_query: sqlText.describe("One SELECT. Ignored when the pipeline has tasks."),
  target_table: z.string().min(1).max(200).describe("analytics.<table> or es:<index>."),
  target_key: z
    .array(columnName)
    .max(32)
    .refine((columns) => new Set(columns).size === columns.length, "A key names each column once.")
    .describe("Key columns of the target; empty: the target's primary key."),
  target_options: targetOptionsSchema.describe("Options that only some kinds of target have."),
  create_target: z.boolean().describe("Create the target from the query's column types when it is missing."),
  add_columns: z.boolean().describe("Add columns of the query that the target lacks, instead of refusing to run."),
  allow_empty: z.boolean().describe("Full and follow mode: let a source without rows empty the target."),
  max_delete_percent: z
    .int()
    .min(0)
    .max(100)
    .describe("Full and follow mode: refuse to delete a larger share of the target at once."),
  max_rejects: z.int().min(0).max(1_000_000).describe("Fail when the target refuses more rows than this in a run."),
  mode: z
    .enum(PIPELINE_MODES)
    .describe(
      "full: every run reads everything. incremental: it reads what lies after incremental_key. follow: it recomputes the keys that changes of any table of the query concern, and starts by itself.",
    ),
  follow: followSchema.describe("Follow mode: how the changes of the source are followed."),
  sweep: z
    .string()
    .max(200)
    .nullable()
    .describe(
      "When the whole target is compared with the query and repaired, beside the other runs: like schedule_interval, or null.",
    ),
  incremental_key: columnName.nullable(),
  incremental_id_key: columnName.nullable(),
  null_cursor: z
    .enum(["reject", "exclude", "each_run"])
    .describe(
      "Incremental mode: rows whose incremental_key is null. They fail the run, are left out, or are read in every run.",
    ),
  lookback_seconds: z
    .int()
    .min(0)
    .max(31 * 24 * 3600)
    .describe(
      "Incremental mode: also read again what changed in this time before the horizon; for timestamps that other systems set.",
    ),
  lookback_numbers: z
    .int()
    .min(0)
    .describe(
      "Incremental mode with a number as incremental_key: also read again this many numbers before the last one; for numbers that are allocated in advance.",
    ),
  batch_size: z
    .int()
    .min(1)
    .max(100_000)
    .describe("Rows per batch. Follow mode: five times as many keys, up to 5,000."),
  retry_for_seconds: z
    .int()
    .min(0)
    .max(7 * 24 * 3600)
    .describe(
      "How long to wait for a temporary problem (an unreachable database, a lock, a full disk) to go away, with growing pauses, before the run fails. 0: only a few attempts.",
    ),
  enabled: z.boolean(),
  schedule_interval: z
    .string()
    .max(200)
    .nullable()
    .describe("An interval (15m, PT15M), cron with a time zone (0 3 * * * Europe/Moscow), or null."),
  tasks: z.array(taskSchema).max(32).describe("The task plan; empty: source_query alone."),
};

/** A whole configuration, with the defaults of the specification. */
export const pipelineConfigSchema = z.strictObject({
  ...fields,
  description: fields.description.default(""),
  type: fields.type.default("SQL"),
  source_type: fields.source_type.default("postgres"),
  source_connection: fields.source_connection.default("main"),
  source_query: fields.source_query.default(""),
  target_key: fields.target_key.default([]),
  target_options: fields.target_options.default({}),
  create_target: fields.create_target.default(false),
  add_columns: fields.add_columns.default(false),
  allow_empty: fields.allow_empty.default(false),
  max_delete_percent: fields.max_delete_percent.default(50),
  max_rejects: fields.max_rejects.default(100),
  mode: fields.mode.default("full"),
  follow: fields.follow.default(followSchema.parse({})),
  sweep: fields.sweep.default(null),
  incremental_key: fields.incremental_key.default(null),
  incremental_id_key: fields.incremental_id_key.default(null),
  null_cursor: fields.null_cursor.default("reject"),
  lookback_seconds: fields.lookback_seconds.default(0),
  lookback_numbers: fields.lookback_numbers.default(0),
  batch_size: fields.batch_size.default(1000),
  retry_for_seconds: fields.retry_for_seconds.default(3600),
  enabled: fields.enabled.default(true),
  schedule_interval: fields.schedule_interval.default(null),
  tasks: fields.tasks.default([]),
});
export type PipelineConfig = z.infer<typeof pipelineConfigSchema>;

/** A configuration that may choose its own id, so that the same file gives the same ids everywhere. */
export const newPipelineSchema = pipelineConfigSchema.extend({ id: z.guid().optional() });
export type NewPipeline = z.infer<typeof newPipelineSchema>;

/** A change that is only validated: any of the fields. */
export const pipelineTrialSchema = z.strictObject(fields).partial();

/** A pipeline of a file: what it does not name stays as it is, or gets its default when the pipeline is new. */
export const appliedPipelineSchema = pipelineTrialSchema.extend({ name, id: z.guid().optional() });

/** A change: any of the fields, at least one. */
export const pipelinePatchSchema = z
  .strictObject(fields)
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, "Name at least one field to change.");
export type PipelinePatch = z.infer<typeof pipelinePatchSchema>;

/** Why a requested pipeline waits, and until when. */
export const waitingSchema = z.object({
  code: z.string().describe("The code of the last attempt's error."),
  reason: z.string(),
  since: z.date().describe("When the problem began; a committed batch ends it."),
  until: z.date().describe("When the next attempt starts; requesting a run starts it at once."),
});

/** A pipeline as the meta-store has it. */
export const pipelineSchema = pipelineConfigSchema.extend({
  id: z.guid(),
  status: z.enum(PIPELINE_STATUSES),
  run_request: z.int().describe("Counts the requests to run; the runs of a request carry its number."),
  waiting: waitingSchema.nullable().describe("Set while it waits for a temporary problem to go away."),
  next_run_at: z.date().nullable().describe("When the schedule fires next; null without one, or while it is planned."),
  config_version: z.int(),
  created_at: z.date(),
  updated_at: z.date(),
});
export type Pipeline = Omit<z.infer<typeof pipelineSchema>, "id"> & { readonly id: PipelineId };

/** The default of each field. Name and target have none. */
const DEFAULTS = pipelineConfigSchema.omit({ name: true, target_table: true }).parse({});

/**
 * The fields of a body that can be read, laid over `base`, and the names of those that cannot. Allows the rest to be
 * checked even though some field is malformed.
 */
export function readableConfig(
  body: Readonly<Record<string, unknown>>,
  base: PipelineConfig | undefined,
): { readonly config: PipelineConfig; readonly unreadable: readonly string[] } {
  const config: Record<string, unknown> = { name: "", target_table: "", ...DEFAULTS, ...base };
  const unreadable: string[] = [];
  for (const [field, schema] of Object.entries(fields)) {
    const parsed = schema.safeParse(body[field]);
    if (parsed.success) config[field] = parsed.data;
    else if (field in body || (base === undefined && !(field in DEFAULTS))) unreadable.push(field);
  }
  return { config: config as PipelineConfig, unreadable };
}

export function isPipelineName(text: string): boolean {
  return name.safeParse(text).success;
}

const CHANGEABLE_WHILE_HELD: ReadonlySet<string> = new Set<keyof PipelineConfig>([
  "batch_size",
  "retry_for_seconds",
  "description",
  "schedule_interval",
  "sweep",
  "enabled",
  "max_rejects",
  "max_delete_percent",
]);

/** The fields of a change that must wait until no runner holds the pipeline. */
export function lockedFields(status: PipelineStatus, current: PipelineConfig, patch: PipelinePatch): string[] {
  if (!isHeld(status)) return [];
  return Object.entries(patch)
    .filter(([field]) => !CHANGEABLE_WHILE_HELD.has(field))
    .filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(current[field as keyof PipelineConfig]))
    .map(([field]) => field);
}
