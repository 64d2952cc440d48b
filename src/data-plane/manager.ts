import { laneOf, RUN_LANES, type RunLane } from "../domain/run.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Claim, RescuedRun } from "../meta-store/ports/run-queue.ts";
import type { Log } from "../observability/log.ts";
import type { RunLogs } from "../observability/run-logs.ts";
import type { RunObserver } from "../observability/runner-metrics.ts";
import { monotonicMs } from "./heartbeat-messages.ts";
import { RunLog } from "./run-log.ts";
import { runSchedules } from "./scheduler.ts";

/** Comparing is heavy on source and target, and less urgent than a load: one at a time. */
export const slotsFor = (concurrency: number): Readonly<Record<RunLane, number>> => ({ write: concurrency, read: 1 });

export interface ManagerParts {
  readonly store: Pick<MetaStore, "queue" | "schedules">;
  readonly runnerId: string;
  readonly leaseMs: number;
  /** How many runs of each lane go on at once in this process. */
  readonly slots: Readonly<Record<RunLane, number>>;
  /** Once it aborts, nothing more is claimed. */
  readonly stopSignal: AbortSignal;
  readonly log: Log;
  readonly runLogs: RunLogs;
  readonly observer: RunObserver;
  /** `heldSince` is the `monotonicMs` from before the claim was sent. */
  dispatch(claim: Claim, heldSince: number): Promise<void>;
}

/** Fills the free slots of each lane with what waits; takes lost runs back and requests those that are due. */
export class PipelineManager {
  readonly #parts: ManagerParts;
  /** By lane, so that comparing never keeps a load waiting. */
  readonly #running: Record<RunLane, Set<Promise<void>>> = { write: new Set(), read: new Set() };
  #lookedAt: Date | null = null;

  constructor(parts: ManagerParts) {
    this.#parts = parts;
  }

  async fillSlots(onSlotFree: () => void): Promise<void> {
    for (const lane of RUN_LANES) await this.#fillLane(lane, onSlotFree);
  }

  /** What this requests wakes every runner. Returns the milliseconds until the next pipeline is due. */
  async lookAfter(): Promise<number> {
    const { store, log, runnerId } = this.#parts;
    for (const rescued of await store.queue.rescueExpired(runnerId)) this.#tellRescue(rescued);
    const look = await runSchedules(store.schedules, log, this.#lookedAt);
    this.#lookedAt = look.now;
    return look.nextDueMs;
  }

  /** The lost runner can no longer say why its run failed, so this one does. */
  #tellRescue({ id, name, status, runId, kind, code }: RescuedRun): void {
    const { log, runLogs, observer } = this.#parts;
    const runLog = new RunLog(log, runLogs, { pipeline: name, pipeline_id: id, run_id: runId });
    const message = `${laneOf(kind) === "write" ? "pipeline" : kind} rescued from a lost runner`;
    // Without a code nothing failed: the run was cancelled, or starts again.
    if (code === null) runLog.warn({ kind, status }, message);
    else runLog.error({ kind, status, code }, message);
    runLog.end();
    if (code !== null) observer.runRescued(kind);
  }

  async #fillLane(lane: RunLane, onSlotFree: () => void): Promise<void> {
    const { store, runnerId, leaseMs, slots, stopSignal, dispatch } = this.#parts;
    const running = this.#running[lane];
    while (running.size < slots[lane] && !stopSignal.aborted) {
      const heldSince = monotonicMs();
      const claim = await store.queue.claimNext(runnerId, leaseMs, lane);
      if (claim === undefined) return;
      const run = dispatch(claim, heldSince).finally(() => {
        running.delete(run);
        onSlotFree();
      });
      running.add(run);
    }
  }

  /** Resolves when every run of this process has ended. */
  async drain(): Promise<void> {
    await Promise.all(RUN_LANES.flatMap((lane) => [...this.#running[lane]]));
  }

  get runningCount(): number {
    return this.#running.write.size + this.#running.read.size;
  }
}
