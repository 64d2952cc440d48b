import type { LeaseTiming } from "../domain/lease.ts";
import type { PipelineStatus } from "../domain/pipeline-status.ts";
import type { Claim, MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

/** Keeps a claim's lease alive, and knows what the last beat said. */
export interface Heartbeat {
  /** True once the lease may be gone: nothing may be written any more. The fence in the database is the guarantee. */
  readonly lost: boolean;
  readonly status: PipelineStatus;
  stop(): void;
}

export function startHeartbeat(
  store: Pick<MetaStore, "extendLease">,
  claim: Claim,
  timing: LeaseTiming,
  log: Log,
): Heartbeat {
  const state = { lost: false, status: "RUNNING" as PipelineStatus };
  let validUntil = performance.now() + timing.durationMs;
  let beating = false;

  const beat = async (): Promise<void> => {
    if (beating || state.lost) return;
    beating = true;
    const sentAt = performance.now();
    try {
      const status = await store.extendLease(claim, timing.durationMs);
      if (status === undefined) state.lost = true;
      else {
        state.status = status;
        validUntil = sentAt + timing.durationMs;
      }
    } catch (error) {
      // One missed beat is survivable; the lease still runs until the last good one expires.
      if (performance.now() >= validUntil) state.lost = true;
      log.warn({ err: error }, "heartbeat failed");
    } finally {
      beating = false;
    }
    if (state.lost) log.warn({}, "lease lost");
  };

  const timer = setInterval(() => void beat(), timing.heartbeatMs);
  timer.unref();
  return {
    get lost() {
      return state.lost;
    },
    get status() {
      return state.status;
    },
    stop: () => clearInterval(timer),
  };
}
