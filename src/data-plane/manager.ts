import type { Claim, MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

export interface ManagerParts {
  readonly store: MetaStore;
  readonly runnerId: string;
  readonly leaseMs: number;
  /** How many pipelines run at once in this process. */
  readonly concurrency: number;
  readonly log: Log;
  dispatch(claim: Claim): Promise<void>;
}

/** One tick: take lost pipelines back, then fill the free slots with waiting pipelines. */
export class PipelineManager {
  readonly #parts: ManagerParts;
  readonly #running = new Set<Promise<void>>();

  constructor(parts: ManagerParts) {
    this.#parts = parts;
  }

  async tick(onSlotFree: () => void): Promise<void> {
    const { store, runnerId, leaseMs, concurrency, log, dispatch } = this.#parts;
    for (const { id, name, status, runId } of await store.rescueExpired()) {
      log.warn({ pipeline: name, pipeline_id: id, run_id: runId, status }, "pipeline rescued from a lost runner");
    }
    while (this.#running.size < concurrency) {
      const claim = await store.claimNext(runnerId, leaseMs);
      if (claim === undefined) return;
      const run = dispatch(claim).finally(() => {
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
