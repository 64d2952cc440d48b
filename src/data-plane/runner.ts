import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { leaseTiming } from "../domain/lease.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { type DispatcherParts, dispatch } from "./dispatcher.ts";
import { PipelineManager } from "./manager.ts";

export interface RunnerOptions extends Pick<DispatcherParts, "connectors" | "targets" | "tasks"> {
  readonly store: MetaStore;
  readonly log: Log;
  readonly version: string;
  readonly concurrency: number;
  readonly pollMs: number;
  readonly leaseMs: number;
  readonly stopTimeoutMs: number;
}

const RECONNECT_MS = 1000;

/**
 * The data-plane: claims waiting pipelines and runs them. It knows nothing of HTTP; requests reach it through the
 * meta-store, which wakes it at once and which it polls as a safety net.
 */
export class Runner {
  readonly id = randomUUID();
  readonly #options: RunnerOptions;
  readonly #manager: PipelineManager;
  #stopping = false;
  #wake: () => void = () => undefined;
  #woken = false;
  #loop: Promise<void> = Promise.resolve();
  #subscription: { close(): Promise<void> } | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const { store, connectors, targets, tasks, leaseMs, concurrency, log } = options;
    const parts = { store, connectors, targets, tasks, timing: leaseTiming(leaseMs) };
    this.#manager = new PipelineManager({
      store,
      runnerId: this.id,
      leaseMs,
      concurrency,
      log,
      dispatch: (claim) => dispatch(parts, claim, () => this.#stopping, withRun(log, claim)),
    });
  }

  async start(): Promise<void> {
    const { store, log, version, concurrency } = this.#options;
    await store.checkReady();
    await store.registerRunner({ id: this.id, hostname: hostname(), pid: process.pid, version });
    this.#subscription = await store.onWork(() => this.wake());
    this.#loop = this.#run();
    log.info({ runner_id: this.id, concurrency }, "runner started");
  }

  /** One look at the meta-store: rescue, claim, dispatch. */
  async tick(): Promise<void> {
    await this.#manager.tick(() => this.wake());
  }

  wake(): void {
    this.#woken = true;
    this.#wake();
  }

  /** Lets the batches under way end, gives the pipelines back, and resolves. */
  async stop(): Promise<void> {
    if (this.#stopping) return this.#loop;
    this.#stopping = true;
    this.wake();
    const { store, log, stopTimeoutMs } = this.#options;
    await this.#loop;
    await this.#subscription?.close();
    const timeout = new AbortController();
    const drained = await Promise.race([
      this.#manager.drain().then(() => true),
      delay(stopTimeoutMs, false, { signal: timeout.signal }).catch(() => false),
    ]);
    timeout.abort();
    if (!drained)
      log.warn({ running: this.#manager.runningCount }, "stopped before every batch ended; recovery continues them");
    await store.markRunnerStopped(this.id).catch((error: unknown) => log.warn({ err: error }, "could not sign off"));
    log.info({ runner_id: this.id }, "runner stopped");
  }

  async #run(): Promise<void> {
    const { store, log, pollMs } = this.#options;
    while (!this.#stopping) {
      this.#woken = false;
      let pauseMs = pollMs;
      try {
        await store.markRunnerSeen(this.id);
        await this.tick();
      } catch (error) {
        log.error({ err: error }, "the meta-store did not answer; trying again");
        pauseMs = RECONNECT_MS;
      }
      await this.#sleep(pauseMs);
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken || this.#stopping) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Every line of a run carries the ids that a person searches for. */
function withRun(log: Log, { pipeline, runId }: { pipeline: { id: string; name: string }; runId: string }): Log {
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, run_id: runId };
  return {
    debug: (fields, message) => log.debug({ ...ids, ...fields }, message),
    info: (fields, message) => log.info({ ...ids, ...fields }, message),
    warn: (fields, message) => log.warn({ ...ids, ...fields }, message),
    error: (fields, message) => log.error({ ...ids, ...fields }, message),
  };
}
