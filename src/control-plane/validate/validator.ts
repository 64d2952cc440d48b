import type { PipelineConfig, PipelineId } from "../../domain/pipeline.ts";
import type { Column } from "../../domain/row.ts";
import type { InspectedTaskPlan } from "../../domain/task-plan.ts";
import type { PipelineState } from "../../meta-store/ports/state.ts";
import type { ApiParts } from "../api.ts";
import type { Findings } from "./findings.ts";

export type ValidateParts = Pick<ApiParts, "store" | "inspector" | "targets" | "asking">;

export interface ValidateQuestion {
  readonly config: PipelineConfig;
  readonly stored: { readonly id: PipelineId; readonly state: PipelineState } | undefined;
  /** True when the configuration is not the stored one. */
  readonly isTrial: boolean;
  /** What is being saved together with it, instead of what is stored under the same names. */
  readonly beside?: readonly PipelineConfig[];
}

/** What the checks share. */
export interface Validator extends ValidateQuestion {
  readonly parts: ValidateParts;
  readonly plan: InspectedTaskPlan;
  readonly findings: Findings;
}

export interface CheckedQuery {
  readonly text: string;
  readonly columns: readonly Column[];
  /** False when its columns cannot be told apart. */
  readonly isUsable: boolean;
}
