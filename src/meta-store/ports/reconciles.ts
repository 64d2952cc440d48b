import type { PipelineId } from "../../domain/pipeline.ts";
import type { Reconcile, ReconcileReport, Verdict } from "../../domain/reconcile.ts";
import type { Page, PageRequest } from "./page.ts";
import type { Claim } from "./run-queue.ts";

/** Comparisons of source and target. Each is a run of its own kind, taken and given up like any other. */
export interface ReconcileStore {
  /** Asking again while one waits or runs gives that one. */
  request(id: PipelineId, author: string): Promise<Reconcile>;
  list(id: PipelineId, page: PageRequest): Promise<Page<Reconcile>>;
  get(id: PipelineId, reconcileId: string): Promise<Reconcile>;
  /** Shows how far it is. */
  noteCompared(claim: Claim, rowsCompared: number): Promise<void>;
  /** What the run has found; it counts once the run has ended. */
  keepFindings(claim: Claim, findings: ReconcileFindings): Promise<void>;
}

export interface ReconcileFindings {
  readonly verdict: Verdict;
  readonly report: ReconcileReport;
}
