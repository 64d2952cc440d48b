import type { Pipeline, PipelineId } from "../../domain/pipeline.ts";
import type { Reconcile, ReconcileReport } from "../../domain/reconcile.ts";
import type { Page, PageRequest } from "./page.ts";
import type { RunFailure } from "./run-queue.ts";

/** Comparisons of source and target. */
export interface ReconcileStore {
  /** Asking again while one waits or runs gives that one. */
  request(id: PipelineId, author: string): Promise<Reconcile>;
  list(id: PipelineId, page: PageRequest): Promise<Page<Reconcile>>;
  get(id: PipelineId, reconcileId: string): Promise<Reconcile>;
  /** Takes the longest waiting one for this runner, or one whose runner disappeared. */
  claim(runnerId: string, leaseMs: number): Promise<ReconcileClaim | undefined>;
  /** Extends the lease and shows how far it is. False means the lease is lost: nobody waits for the result. */
  extend(claim: ReconcileClaim, leaseMs: number, rowsCompared: number): Promise<boolean>;
  /** False when the lease is lost. */
  finish(claim: ReconcileClaim, outcome: ReconcileOutcome): Promise<boolean>;
}

/** A comparison in the hands of one runner. */
export interface ReconcileClaim {
  readonly id: string;
  readonly pipeline: Pipeline;
  readonly runnerId: string;
  readonly epoch: number;
}

export type ReconcileOutcome =
  | { readonly status: "MATCH" | "DIFFERENT" | "INCONCLUSIVE"; readonly report: ReconcileReport }
  | { readonly status: "INCONCLUSIVE" | "FAILED"; readonly failure: RunFailure }
  /** The runner stops; another one begins anew. */
  | { readonly status: "WAITING" };
