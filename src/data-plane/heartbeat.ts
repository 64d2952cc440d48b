import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { LeaseTiming } from "../domain/lease.ts";
import { endAskedFor, type PipelineStatus } from "../domain/pipeline-status.ts";
import { laneOf } from "../domain/run.ts";
import type { Claim, LeaseRenewal } from "../meta-store/ports/run-queue.ts";
import type { Log } from "../observability/log.ts";
import type { FromHeartbeatThread, HeartbeatThreadData, ToHeartbeatThread } from "./heartbeat-messages.ts";

/** Keeps a claim's lease alive, and knows what the last beat said. */
export interface Heartbeat {
  /** True once the lease may be gone: nothing more may be written. The fence in the database is the guarantee. */
  readonly lost: boolean;
  readonly status: PipelineStatus;
  /** Aborts when the lease is lost or the run is cancelled: what is under way ends at once. */
  readonly endSignal: AbortSignal;
  /** Aborts when the run is cancelled. */
  readonly cancelSignal: AbortSignal;
  /** Aborts for these reasons, and when a pause is requested: there is nothing left to wait for. */
  readonly interruptSignal: AbortSignal;
  stop(): void;
}

export interface HeartbeatsOptions {
  readonly renewal: LeaseRenewal;
  readonly runnerId: string;
  readonly timing: LeaseTiming;
  readonly log: Log;
}

/**
 * A thread must be a compiled file: Node.js 20 does not run TypeScript. From the sources, as under vitest, the thread
 * is the one of the last build, which `npm test` makes sure is up to date.
 */
const THREAD = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/data-plane/heartbeat-worker.js" : "./heartbeat-worker.js",
  import.meta.url,
);

const CLOSE_TIMEOUT_MS = 1000;

/** All heartbeats of one runner, beaten by one thread. */
export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #held = new Map<string, HeldClaim>();
  #thread: Worker | undefined;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
  }

  /** Resolves when the thread runs. */
  async start(): Promise<void> {
    const thread = this.#startThread();
    thread.ref();
    try {
      await once(thread, "message");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new VitrinaError("INTERNAL", `The heartbeat thread did not start: ${reason}.`, { cause: error });
    } finally {
      thread.unref();
    }
  }

  /** `heldSince` is the `monotonicMs` from before the claim was sent: the lease runs from then on. */
  hold(claim: Claim, heldSince: number, log: Log): Heartbeat {
    const { pipeline, kind, epoch } = claim;
    const lane = laneOf(kind);
    const key = `${pipeline.id} ${lane} ${epoch}`;
    const held = new HeldClaim(log, () => {
      this.#held.delete(key);
      this.#tell({ kind: "release", key });
    });
    this.#held.set(key, held);
    const validUntil = heldSince + this.#options.timing.durationMs;
    this.#thread ??= this.#startThread();
    this.#tell({ kind: "hold", lease: { key, pipelineId: pipeline.id, lane, epoch, validUntil } });
    return held;
  }

  async close(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#thread = undefined;
    this.#loseAll("the runner stopped");
    thread.ref();
    const exited = once(thread, "exit");
    thread.postMessage({ kind: "close" } satisfies ToHeartbeatThread);
    // The thread holds nothing that must be saved, so a slow shutdown is cut short.
    await Promise.race([exited, delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    await thread.terminate();
  }

  #startThread(): Worker {
    const { log, renewal, runnerId, timing } = this.#options;
    const workerData: HeartbeatThreadData = { renewal, runnerId, timing };
    const thread = new Worker(THREAD, { workerData, execArgv: [], name: "vitrina heartbeat" });
    thread.unref();
    thread.on("message", (message: FromHeartbeatThread) => this.#hear(message));
    thread.on("error", (error) => log.error({ err: error }, "the heartbeat thread failed"));
    thread.on("exit", () => {
      if (this.#thread !== thread) return;
      // Nothing renews these leases now. The next claim starts a new thread.
      this.#thread = undefined;
      this.#loseAll("the heartbeat thread ended");
    });
    this.#thread = thread;
    return thread;
  }

  #loseAll(reason: string): void {
    for (const held of this.#held.values()) held.lose(reason);
  }

  #tell(message: ToHeartbeatThread): void {
    this.#thread?.postMessage(message);
  }

  #hear(message: FromHeartbeatThread): void {
    switch (message.kind) {
      case "ready":
        break;
      case "trouble":
        this.#options.log.warn({ reason: message.message }, "heartbeat failed; trying again");
        break;
      case "status":
        this.#held.get(message.key)?.changeStatus(message.status);
        break;
      case "lost":
        this.#held.get(message.key)?.lose(message.reason);
        break;
    }
  }
}

class HeldClaim implements Heartbeat {
  readonly #log: Log;
  readonly #end = new AbortController();
  readonly #cancel = new AbortController();
  readonly #interrupt = new AbortController();
  readonly stop: () => void;
  status: PipelineStatus = "RUNNING";
  lost = false;

  constructor(log: Log, release: () => void) {
    this.#log = log;
    this.stop = release;
  }

  get endSignal(): AbortSignal {
    return this.#end.signal;
  }

  get cancelSignal(): AbortSignal {
    return this.#cancel.signal;
  }

  get interruptSignal(): AbortSignal {
    return this.#interrupt.signal;
  }

  changeStatus(status: PipelineStatus): void {
    this.status = status;
    const asked = endAskedFor(status);
    if (asked !== undefined) this.#interrupt.abort();
    if (asked !== "cancelled") return;
    this.#end.abort();
    this.#cancel.abort();
  }

  lose(reason: string): void {
    if (this.lost) return;
    this.lost = true;
    this.#log.warn({ reason }, "lease lost");
    this.#end.abort();
    this.#interrupt.abort();
  }
}
