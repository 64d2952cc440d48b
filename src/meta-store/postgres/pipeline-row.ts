import { type Pipeline, type PipelineConfig, pipelineConfigSchema } from "../../domain/pipeline.ts";

const CONFIG_FIELDS = Object.keys(pipelineConfigSchema.shape) as (keyof PipelineConfig)[];

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

/** A row selected with PIPELINE_COLUMNS, possibly with more columns beside them, as a pipeline. */
export function pipelineFromRow(row: Record<string, unknown>): Pipeline {
  const { id, status, run_request, next_run_at, config_version, created_at, updated_at } = row as unknown as Pipeline;
  const waiting = waitingOf(row["waiting"] as WaitingJson | null);
  return { ...configOf(row), id, status, run_request, waiting, next_run_at, config_version, created_at, updated_at };
}

type WaitingJson = { readonly [key in keyof NonNullable<Pipeline["waiting"]>]: string };

/** In JSON, times are texts. */
function waitingOf(json: WaitingJson | null): Pipeline["waiting"] {
  return json === null ? null : { ...json, since: new Date(json.since), until: new Date(json.until) };
}

/** Only the configuration: what a version keeps and what a change is compared with. */
export function configOf(source: object): PipelineConfig {
  const values = source as Record<string, unknown>;
  return Object.fromEntries(CONFIG_FIELDS.map((field) => [field, values[field]])) as PipelineConfig;
}
