import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { leaseTiming } from "../domain/lease.ts";
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from "../domain/retry-policy.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { ClearAwaySlot } from "./clear-away.ts";
import { type DispatcherParts, dispatch } from "./dispatcher.ts";
import { KeptSources } from "./follow/kept-sources.ts";
import { FollowWatcher } from "./follow/watcher.ts";
import { Heartbeats } from "./heartbeat.ts";
import { monotonicMs } from "./heartbeat-messages.ts";
import { PipelineManager, slotsFor } from "./manager.ts";
import { HistoryCleaner } from "./run-history.ts";

export interface RunnerOptions
  extends Pick<
    DispatcherParts,
    "connectors" | "targets" | "tasks" | "runLogs" | "tracer" | "observer" | "installChanges"
  > {
  readonly store: MetaStore;
  readonly log: Log;
  readonly version: string;
  readonly concurrency: number;
  readonly pollMs: number;
  readonly leaseMs: number;
  readonly stopTimeoutMs: number;
  readonly runHistoryDays: number;
  readonly retry?: RetryPolicy;
}

const FIRST_RECONNECT_MS = 1000;
const LAST_RECONNECT_MS = 30_000;
/** However often the runner is woken. */
const LOOK_AFTER_EVERY_MS = 250;

/**
 * The data-plane: claims waiting pipelines and runs them. It knows nothing of HTTP; requests reach it through the
 * meta-store, which wakes it at once and which it polls as a safety net.
 */
export class Runner {
  readonly id = randomUUID();
  readonly #options: RunnerOptions;
  readonly #heartbeats: Heartbeats;
  readonly #manager: PipelineManager;
  readonly #clearAway: ClearAwaySlot;
  readonly #history: HistoryCleaner;
  readonly #watcher: FollowWatcher;
  readonly #keptSources = new KeptSources();
  readonly #stop = new AbortController();
  #wake: () => void = () => undefined;
  #woken = false;
  #lastTurn = monotonicMs();
  #lookAfterAt = 0;
  #loop: Promise<void> = Promise.resolve();
  #subscription: { close(): Promise<void> } | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const { store, leaseMs, concurrency, log, runLogs, observer, retry = DEFAULT_RETRY_POLICY } = options;
    const { signal: stopSignal } = this.#stop;
    const timing = leaseTiming(leaseMs);
    this.#heartbeats = new Heartbeats({ renewal: store.queue.leaseRenewal(), runnerId: this.id, timing, log });
    const parts: DispatcherParts = {
      ...options,
      timing,
      retry,
      heartbeats: this.#heartbeats,
      keptSources: this.#keptSources,
      stopSignal,
    };
    this.#manager = new PipelineManager({
      store,
      runnerId: this.id,
      leaseMs,
      slots: slotsFor(concurrency),
      stopSignal,
      log,
      runLogs,
      observer,
      dispatch: (claim, heldSince) => dispatch(parts, claim, heldSince),
    });
    this.#clearAway = new ClearAwaySlot(options);
    this.#history = new HistoryCleaner(options);
    this.#watcher = new FollowWatcher(options);
  }

  async start(): Promise<void> {
    const { store, log, version, concurrency, tasks, pollMs } = this.#options;
    await store.checkReady();
    await store.runners.register({
      id: this.id,
      hostname: hostname(),
      pid: process.pid,
      version,
      tasks: tasks.list(),
      reportEveryMs: pollMs,
    });
    try {
      await this.#heartbeats.start();
      this.#subscription = await store.queue.onWork(() => this.wake());
    } catch (error) {
      await this.#heartbeats.close();
      throw error;
    }
    this.#loop = this.#run();
    this.#watcher.start();
    log.info({ runner_id: this.id, concurrency }, "runner started");
  }

  /** One round: claim what waits; now and then rescue, schedule, tidy up. Returns how long to sleep at most. */
  async tick(): Promise<number> {
    await this.#manager.fillSlots(() => this.wake());
    const waitMs = this.#lookAfterAt - monotonicMs();
    return waitMs > 0 ? waitMs : this.#lookAfter();
  }

  async #lookAfter(): Promise<number> {
    const { store, pollMs } = this.#options;
    this.#lookAfterAt = monotonicMs() + LOOK_AFTER_EVERY_MS;
    await store.runners.markSeen(this.id);
    const nextDueMs = await this.#manager.lookAfter();
    await this.#clearAway.tick();
    await this.#history.tick();
    this.#lookAfterAt = Math.min(this.#lookAfterAt, monotonicMs() + nextDueMs);
    return Math.min(nextDueMs, pollMs);
  }

  /** Time since the loop's last round: it sleeps, waits for the meta-store, or is stuck. 0 once it is told to stop. */
  get silentMs(): number {
    return this.#stop.signal.aborted ? 0 : monotonicMs() - this.#lastTurn;
  }

  wake(): void {
    this.#woken = true;
    this.#wake();
    this.#watcher.wake();
  }

  /** Lets the batches under way end, gives the pipelines back, and resolves. */
  async stop(): Promise<void> {
    if (this.#stop.signal.aborted) return this.#loop;
    this.#stop.abort();
    this.wake();
    const { store, log, stopTimeoutMs } = this.#options;
    await Promise.all([this.#loop, this.#watcher.stop()]);
    await this.#subscription?.close();
    const timeout = new AbortController();
    const drained = await Promise.race([
      Promise.all([this.#manager.drain(), this.#clearAway.drain()]).then(() => true),
      delay(stopTimeoutMs, false, { signal: timeout.signal }).catch(() => false),
    ]);
    timeout.abort();
    await this.#keptSources.close();
    if (!drained)
      log.warn({ running: this.#manager.runningCount }, "stopped before every batch ended; recovery continues them");
    await this.#heartbeats.close();
    await store.runners
      .markStopped(this.id)
      .catch((error: unknown) => log.warn({ err: error }, "could not mark the runner as stopped"));
    log.info({ runner_id: this.id }, "runner stopped");
  }

  async #run(): Promise<void> {
    const { log, observer } = this.#options;
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      this.#woken = false;
      this.#lastTurn = monotonicMs();
      try {
        const pauseMs = await this.tick();
        observer.turned();
        failures = 0;
        await this.#sleep(pauseMs);
      } catch (error) {
        const pauseMs = Math.min(FIRST_RECONNECT_MS * 2 ** failures, LAST_RECONNECT_MS);
        failures += 1;
        log.error({ err: error, wait_ms: pauseMs }, "the meta-store did not answer; trying again");
        await this.#sleep(pauseMs);
      }
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken || this.#stop.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
