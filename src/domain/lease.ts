/** A runner holds a run by a lease that it renews. These are the times derived from the length of a lease. */
import { VitrinaError } from "./error-catalogue.ts";

export interface LeaseTiming {
  readonly durationMs: number;
  /** A third of the lease: one lost heartbeat does not lose the run. */
  readonly heartbeatMs: number;
  /**
   * The longest wait for a lock, and the longest pause within a transaction. Together they are shorter than the lease,
   * so a frozen runner cannot hold the lock on its lease row beyond the lease. How long a statement computes does not
   * matter: the lease is locked by the last one.
   */
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** Below this the timeouts would round towards 0, which PostgreSQL reads as "no timeout". */
const MIN_LEASE_MS = 100;

/** SPEC R4.7: after this many lost runners in a row without a committed batch, the pipeline fails. */
export const MAX_LOSSES = 3;

export function leaseTiming(durationMs: number): LeaseTiming {
  if (!Number.isFinite(durationMs) || durationMs < MIN_LEASE_MS) {
    throw new VitrinaError("SETTINGS_INVALID", `A lease must last at least ${MIN_LEASE_MS} ms, not ${durationMs}.`);
  }
  return {
    durationMs,
    heartbeatMs: Math.floor(durationMs / 3),
    lockTimeoutMs: Math.floor(durationMs * 0.6),
    idleTimeoutMs: Math.floor(durationMs * 0.3),
  };
}
