import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Claim, RescuedPipeline } from "../meta-store/ports/run-queue.ts";
import type { Log } from "../observability/log.ts";
import type { RunLogs } from "../observability/run-logs.ts";
import type { RunObserver } from "../observability/runner-metrics.ts";
import { monotonicMs } from "./heartbeat-messages.ts";
import { RunLog } from "./run-log.ts";
import { runSchedules } from "./scheduler.ts";

export interface ManagerParts {
  readonly store: MetaStore;
  readonly runnerId: string;
  readonly leaseMs: number;
  /** How many pipelines run at once in this process. */
  readonly concurrency: number;
  /** Once it aborts, nothing more is claimed. */
  readonly stopSignal: AbortSignal;
  readonly log: Log;
  readonly runLogs: RunLogs;
  readonly observer: RunObserver;
  /** `heldSince` is the `monotonicMs` from before the claim was sent. */
  dispatch(claim: Claim, heldSince: number): Promise<void>;
}

/** One tick: take lost pipelines back, request those that are due, then fill the free slots with waiting pipelines. */
export class PipelineManager {
  readonly #parts: ManagerParts;
  readonly #running = new Set<Promise<void>>();

  constructor(parts: ManagerParts) {
    this.#parts = parts;
  }

  /** Returns in how many milliseconds the next pipeline is due. */
  async tick(onSlotFree: () => void): Promise<number> {
    const { store, log, runnerId } = this.#parts;
    for (const rescued of await store.queue.rescueExpired(runnerId)) this.#tellRescue(rescued);
    const nextDueMs = await runSchedules(store.schedules, log);
    await this.#fillSlots(onSlotFree);
    return nextDueMs;
  }

  /** The lost runner can no longer say why its run failed, so this one does. */
  #tellRescue({ id, name, status, runId, code }: RescuedPipeline): void {
    const { log, runLogs, observer } = this.#parts;
    const message = "pipeline rescued from a lost runner";
    if (runId === null) {
      log.warn({ pipeline: name, pipeline_id: id, status }, message);
      return;
    }
    const runLog = new RunLog(log, runLogs, { pipeline: name, pipeline_id: id, run_id: runId });
    // Without a code it was cancelled: nothing went wrong that anybody wanted.
    if (code === null) runLog.warn({ status }, message);
    else runLog.error({ status, code }, message);
    runLog.end();
    if (code !== null) observer.runRescued();
  }

  async #fillSlots(onSlotFree: () => void): Promise<void> {
    const { store, runnerId, leaseMs, concurrency, stopSignal, dispatch } = this.#parts;
    while (this.#running.size < concurrency && !stopSignal.aborted) {
      const heldSince = monotonicMs();
      const claim = await store.queue.claimNext(runnerId, leaseMs);
      if (claim === undefined) return;
      const run = dispatch(claim, heldSince).finally(() => {
        this.#running.delete(run);
        onSlotFree();
      });
      this.#running.add(run);
    }
  }

  /** Resolves when every run of this process has ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#running);
  }

  get runningCount(): number {
    return this.#running.size;
  }
}
