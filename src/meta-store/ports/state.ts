import type { Checkpoint } from "../../domain/checkpoint.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { SourceMark } from "../../domain/source-mark.ts";
import type { TargetMark } from "../../domain/target-mark.ts";
import type { Candidate, Watermark } from "../../domain/watermark.ts";

/** Where pipelines are, for whoever looks at it or changes it by hand. Runs move it by a batch commit. */
export interface StateStore {
  get(id: PipelineId): Promise<PipelineState>;
  /** Forgets where the pipeline is: the next run reads everything. Refused while a runner holds the pipeline. */
  reset(id: PipelineId): Promise<void>;
  /** Keeps the watermark although query, key or target have changed. Refused while a runner holds the pipeline. */
  keep(id: PipelineId): Promise<void>;
  /** The next incremental load starts there. Refused while a runner holds the pipeline. */
  set(id: PipelineId, watermark: Watermark): Promise<void>;
}

export interface PipelineState extends Checkpoint {
  /** Where the next incremental load starts. */
  readonly watermark: Watermark;
  readonly watermarkFingerprint: string | null;
  readonly candidate: Candidate | null;
  /** The horizon of the unfinished incremental load. */
  readonly safePoint: string | null;
  /** The target that the checkpoint was made for; null where there is no checkpoint, or a person keeps it for any. */
  readonly targetMark: TargetMark | null;
  /** The source that the position was reached in; null where it is not known. */
  readonly sourceMark: SourceMark | null;
  /** The target was found to be written later than this meta-store knows of; nobody has decided yet. */
  readonly targetAhead: boolean;
  /** The last row that was processed, for people; without a watermark nothing starts there. */
  readonly progress: Watermark;
  readonly updatedAt: Date | null;
}
