import { once } from "node:events";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { ChangeListener } from "./change-listener.ts";

/** Notifications can be lost on the way; so often it is looked at anyway. */
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
  /** Whoever asked may hang up. */
  readonly reply: FastifyReply;
  look(): Promise<T>;
  isOver(seen: T): boolean;
}

/** Looks until it is over or the time is, and returns what it saw last. */
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
