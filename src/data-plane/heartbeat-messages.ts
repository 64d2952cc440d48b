import type { LeaseTiming } from "../domain/lease.ts";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import type { RunLane } from "../domain/run.ts";
import type { LeaseRenewal } from "../meta-store/ports/run-queue.ts";

/** The messages between the runner and its heartbeat thread. */

export interface HeartbeatThreadData {
  readonly renewal: LeaseRenewal;
  readonly runnerId: string;
  readonly timing: LeaseTiming;
}

export interface HeldLease {
  /** Names the lease in every message: a pipeline can be claimed again while its lost claim is still being ended. */
  readonly key: string;
  readonly pipelineId: string;
  readonly lane: RunLane;
  readonly epoch: number;
  /** By `monotonicMs`; until the first beat it counts from before the claim was sent. */
  readonly validUntil: number;
}

export type ToHeartbeatThread =
  | { readonly kind: "hold"; readonly lease: HeldLease }
  | { readonly kind: "release"; readonly key: string }
  | { readonly kind: "close" };

export type FromHeartbeatThread =
  | { readonly kind: "ready" }
  | { readonly kind: "status"; readonly key: string; readonly status: PipelineStatus }
  /** `taken`: another runner has it, or recovery took it back. `expired`: no beat succeeded for a whole lease. */
  | { readonly kind: "lost"; readonly key: string; readonly reason: "taken" | "expired" }
  | { readonly kind: "trouble"; readonly message: string };

/** A clock that never jumps and that all threads of the process share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
