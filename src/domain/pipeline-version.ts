import { type PipelineConfig, pipelineConfigSchema } from "./pipeline.ts";

/** A configuration as it once was. */
export interface PipelineVersion {
  readonly version: number;
  readonly author: string;
  readonly created_at: Date;
  /** As it was stored; an earlier version of Vitrina may have had fewer fields. */
  readonly config: Readonly<Record<string, unknown>>;
}

export interface FieldChange {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The whole configuration, or `undefined` if it breaks rules that were added later. */
export function configOfVersion({ config }: PipelineVersion): PipelineConfig | undefined {
  const parsed = pipelineConfigSchema.safeParse(config);
  return parsed.success ? parsed.data : undefined;
}

/** A field that the earlier version lacks counts as its default. */
export function changesBetween(before: PipelineVersion, after: PipelineVersion): FieldChange[] {
  const [old, fresh] = [completed(before), completed(after)];
  const fields = [...new Set([...Object.keys(old), ...Object.keys(fresh)])];
  return fields
    .filter((field) => JSON.stringify(old[field]) !== JSON.stringify(fresh[field]))
    .map((field) => ({ field, before: old[field] ?? null, after: fresh[field] ?? null }));
}

function completed(version: PipelineVersion): Readonly<Record<string, unknown>> {
  return configOfVersion(version) ?? version.config;
}
