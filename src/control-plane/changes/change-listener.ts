import { once } from "node:events";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { ChangeFeed } from "../../meta-store/ports/changes.ts";

/** A request that waits for changes. */
export interface Listening {
  /** Resolves at the next change since the last call, at once if there was one, or when the time is over. */
  next(atMostMs: number): Promise<void>;
  /** As if there had been a change. */
  wake(): void;
  /** Also wakes. */
  stop(): void;
}

interface Listener {
  /** Null: every pipeline. */
  readonly pipelineId: PipelineId | null;
  hear(): void;
}

/**
 * One connection to the meta-store that listens on behalf of all requests. It is opened for the first of them; a
 * request that waits holds no connection itself.
 */
export class ChangeListener {
  readonly #store: ChangeFeed;
  readonly #listeners = new Set<Listener>();
  #subscription: Promise<{ close(): Promise<void> }> | undefined;
  #closed = false;

  constructor(store: ChangeFeed) {
    this.#store = store;
  }

  /** True once the server stops: no request should wait any longer. */
  get closed(): boolean {
    return this.#closed;
  }

  /** What changes after this has resolved is not missed. */
  async listen(pipelineId: PipelineId | null): Promise<Listening> {
    let missed = false;
    let wake: (() => void) | undefined;
    const listener: Listener = {
      pipelineId,
      hear() {
        missed = true;
        wake?.();
      },
    };
    this.#listeners.add(listener);
    try {
      await this.#subscribe();
    } catch (error) {
      this.#listeners.delete(listener);
      throw error;
    }
    return {
      next: async (atMostMs) => {
        if (!missed && !this.#closed) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, atMostMs);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
          wake = undefined;
        }
        missed = false;
      },
      wake: listener.hear,
      stop: () => {
        this.#listeners.delete(listener);
        listener.hear();
      },
    };
  }

  /** Wakes everybody, so that they answer with what they know. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#tell(null);
    const subscription = await this.#subscription?.catch(() => undefined);
    await subscription?.close();
  }

  async #subscribe(): Promise<void> {
    this.#subscription ??= this.#store.onChange((id) => this.#tell(id));
    try {
      await this.#subscription;
    } catch (error) {
      this.#subscription = undefined;
      throw error;
    }
  }

  #tell(changed: PipelineId | null): void {
    for (const { pipelineId, hear } of this.#listeners) {
      if (changed === null || pipelineId === null || pipelineId === changed) hear();
    }
  }
}

/** Notifications can be lost, so changes are also polled at this interval. */
const LOOK_AGAIN_MS = 5000;

/** A time to wait: 30s, 500ms, or seconds without a unit. */
export const waitSchema = z
  .string()
  .regex(/^(([0-5]?\d|60)s?|(\d{1,4}|[1-5]\d{4}|60000)ms)$/, "It must be a time such as 30s or 500ms, at most 60s.")
  .transform((text) => Number.parseInt(text, 10) * (text.endsWith("ms") ? 1 : 1000));

export interface Wait<T> {
  readonly listener: ChangeListener;
  readonly pipelineId: PipelineId;
  readonly waitMs: number;
  /** For what changes without a notification. */
  readonly lookEveryMs?: number;
  /** Aborts when the client hangs up. */
  readonly reply: FastifyReply;
  look(): Promise<T>;
  isOver(seen: T): boolean;
}

/** Polls until `isOver` or the time is up, and returns what it saw last. */
export async function waitUntil<T>(wait: Wait<T>): Promise<T> {
  const { listener, pipelineId, waitMs, lookEveryMs = LOOK_AGAIN_MS, reply, look, isOver } = wait;
  const deadline = performance.now() + waitMs;
  const first = await look();
  if (waitMs === 0 || isOver(first)) return first;
  const listening = await listener.listen(pipelineId);
  const hungUp = new AbortController();
  once(reply.raw, "close", { signal: hungUp.signal }).then(
    () => listening.stop(),
    () => undefined,
  );
  try {
    for (;;) {
      const seen = await look();
      const leftMs = deadline - performance.now();
      if (isOver(seen) || leftMs <= 0 || listener.closed || reply.raw.closed) return seen;
      await listening.next(Math.min(leftMs, lookEveryMs));
    }
  } finally {
    hungUp.abort();
    listening.stop();
  }
}
