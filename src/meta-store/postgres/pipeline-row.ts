import { z } from "zod";
import {
  type Pipeline,
  type PipelineConfig,
  pipelineConfigSchema,
  pipelineSchema,
  waitingSchema,
} from "../../domain/pipeline.ts";
import { decodeRow, pipelineId } from "./rows.ts";

const CONFIG_FIELDS = pipelineConfigSchema.keyof().options;

/** Every field of the configuration has a column of its name, except the tasks, which have a table. */
export const CONFIG_COLUMNS = CONFIG_FIELDS.filter((field) => field !== "tasks");

/** The columns of a pipeline with its tasks, for a query where `p` is the row of etl.etl_pipelines. */
export const PIPELINE_COLUMNS = `
  ${CONFIG_COLUMNS.map((column) => `p.${column}`).join(", ")},
  CASE WHEN p.not_before IS NOT NULL
       THEN jsonb_build_object('code', p.trouble_code, 'reason', p.trouble,
                               'since', p.troubled_since, 'until', p.not_before) END AS waiting,
  p.id, p.status, p.run_request, p.next_run_at, p.config_version, p.created_at, p.updated_at,
  coalesce((
    SELECT jsonb_agg(jsonb_build_object('order_index', t.order_index, 'task_type', t.task_type, 'body', t.body,
                                        'source_table', t.source_table, 'target_table', t.target_table)
                     ORDER BY t.order_index)
      FROM etl.etl_pipeline_tasks t WHERE t.pipeline_id = p.id), '[]') AS tasks`;

const text = z.string();

/**
 * Without the API's rules for what people write: a row that was written by hand is shown all the same. There may be more
 * columns beside it, and in JSON times are texts.
 */
export const pipelineRow = z.object({
  ...pipelineSchema.shape,
  id: pipelineId,
  name: text,
  description: text,
  source_connection: text,
  source_query: text,
  target_table: text,
  target_key: z.array(text),
  max_rejects: z.int(),
  incremental_key: text.nullable(),
  incremental_id_key: text.nullable(),
  lookback_seconds: z.int(),
  schedule_interval: text.nullable(),
  tasks: z.array(
    z.object({
      order_index: z.int(),
      task_type: text,
      body: text,
      source_table: text.nullable(),
      target_table: text.nullable(),
    }),
  ),
  waiting: waitingSchema.extend({ since: z.coerce.date(), until: z.coerce.date() }).nullable(),
});

/** A row selected with PIPELINE_COLUMNS. */
export function pipelineFromRow(row: unknown): Pipeline {
  return decodeRow(pipelineRow, row);
}

/** Only the configuration: what a version keeps and what a change is compared with. */
export function configOf(pipeline: PipelineConfig): PipelineConfig {
  return Object.fromEntries(CONFIG_FIELDS.map((field) => [field, pipeline[field]])) as PipelineConfig;
}
