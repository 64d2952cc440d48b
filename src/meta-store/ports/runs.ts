import type { LineLevel } from "../../domain/log-level.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { Run, RunKind, RunLane, RunStatus, RunTrigger } from "../../domain/run.ts";
import type { NewRunLogLine, RunLogLine } from "../../domain/run-log.ts";
import type { Page, PageRequest } from "./page.ts";

export interface RunHistory {
  /** Newest first; `null`: of all pipelines. */
  list(id: PipelineId | null, page: PageRequest, filter?: RunFilter): Promise<Page<Run>>;
  get(id: PipelineId, runId: string): Promise<Run>;
}

interface RunFilter {
  readonly kind?: RunKind | undefined;
  readonly lane?: RunLane | undefined;
  readonly status?: RunStatus | undefined;
  readonly trigger?: RunTrigger | undefined;
  readonly run_request?: number | undefined;
  readonly started_after?: Date | undefined;
  readonly started_before?: Date | undefined;
}

export interface RunLogStore {
  /** Lines of runs that are gone are left out. */
  append(lines: readonly NewRunLogLine[]): Promise<void>;
  /** Oldest first. `after` may be the id of any line. */
  read(id: PipelineId, runId: string, page: RunLogRequest): Promise<RunLogPage>;
}

interface RunLogRequest extends PageRequest {
  /** Only lines of this level or above. */
  readonly level?: LineLevel | undefined;
}

export interface RunLogPage extends Page<RunLogLine> {
  readonly run_status: RunStatus;
  /** No more lines will come. */
  readonly over: boolean;
}
