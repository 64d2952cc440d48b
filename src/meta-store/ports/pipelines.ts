import type { NewPipeline, Pipeline, PipelineId, PipelinePatch } from "../../domain/pipeline.ts";
import type { PipelineStatus } from "../../domain/pipeline-status.ts";
import type { PipelineVersion } from "../../domain/pipeline-version.ts";
import type { Page, PageRequest } from "./page.ts";

/** The configuration of pipelines. */
export interface PipelineStore {
  /** By name. */
  list(page: PageRequest, filter?: PipelineFilter): Promise<Page<Pipeline>>;
  /** By id or by name. */
  get(idOrName: string): Promise<Pipeline>;
  create(pipeline: NewPipeline, author: string): Promise<Pipeline>;
  /**
   * Refuses fields that are locked while a runner holds the pipeline, and any change when the pipeline is no longer at
   * the expected version. Keeps the new configuration as a version.
   */
  update(id: PipelineId, patch: PipelinePatch, update: PipelineUpdate): Promise<Pipeline>;
  /** Several at once, all or none. A refusal points at the pipeline by its place: `/pipelines/2/…`. */
  apply(changes: readonly ConfigurationChange[], author: string): Promise<Pipeline[]>;
  /** Refused while a runner holds the pipeline, or when it is not at the expected version. The target keeps its data. */
  delete(id: PipelineId, expectedVersion?: number): Promise<void>;
}

export interface PipelineUpdate {
  readonly author: string;
  /** Sees the whole pipeline as it would become, and refuses it by throwing. */
  readonly check?: (merged: Pipeline) => void | Promise<void>;
  readonly expectedVersion?: number | undefined;
}

/** Of one pipeline among several. */
export type ConfigurationChange =
  | { readonly create: NewPipeline }
  | { readonly update: PipelineId; readonly patch: PipelinePatch; readonly expectedVersion: number };

/** Every field that is given must fit. */
export interface PipelineFilter {
  readonly status?: PipelineStatus | undefined;
  readonly enabled?: boolean | undefined;
  readonly mode?: Pipeline["mode"] | undefined;
  /** How the name begins. */
  readonly name?: string | undefined;
  readonly target_table?: string | undefined;
}

/** The configurations that pipelines have had. */
export interface VersionStore {
  /** Newest first. */
  list(id: PipelineId, page: PageRequest): Promise<Page<VersionWithPrevious>>;
  get(id: PipelineId, version: number): Promise<PipelineVersion>;
}

interface VersionWithPrevious {
  readonly version: PipelineVersion;
  /** Null for the first. */
  readonly previous: PipelineVersion | null;
}
