import { setTimeout as delay } from "node:timers/promises";
import type { LeaseTiming } from "../domain/lease.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { ReconcileClaim, ReconcileOutcome } from "../meta-store/ports/reconciles.ts";
import { type Log, redact } from "../observability/log.ts";
import { databaseError } from "../postgres/errors.ts";
import { type ReconcileParts, reconcile } from "./reconcile.ts";

export interface ReconcileSlotParts extends Omit<ReconcileParts, "store"> {
  readonly store: MetaStore;
  readonly runnerId: string;
  readonly timing: LeaseTiming;
  /** Once it aborts, the reconcile under way is given back. */
  readonly stopSignal: AbortSignal;
  readonly log: Log;
}

/** Executes reconciles beside the pipelines, one at a time, so that comparing never keeps a load waiting. */
export class ReconcileSlot {
  readonly #parts: ReconcileSlotParts;
  #running: Promise<void> | undefined;

  constructor(parts: ReconcileSlotParts) {
    this.#parts = parts;
  }

  async tick(onFree: () => void): Promise<void> {
    const { store, runnerId, timing, stopSignal } = this.#parts;
    if (this.#running !== undefined || stopSignal.aborted) return;
    const claim = await store.reconciles.claim(runnerId, timing.durationMs);
    if (claim === undefined) return;
    this.#running = execute(this.#parts, claim).finally(() => {
      this.#running = undefined;
      onFree();
    });
  }

  /** Resolves when the reconcile of this process has ended or was given back. */
  async drain(): Promise<void> {
    await this.#running;
  }
}

/** Never throws: what cannot be reported is left to the lease, which runs out, and another runner begins anew. */
async function execute(parts: ReconcileSlotParts, claim: ReconcileClaim): Promise<void> {
  const { store, stopSignal } = parts;
  const { pipeline, id } = claim;
  const ids = { pipeline: pipeline.name, pipeline_id: pipeline.id, reconcile_id: id };
  const lease = holdLease(parts, claim);
  try {
    parts.log.info({ ...ids, epoch: claim.epoch }, "reconcile started");
    const signal = AbortSignal.any([stopSignal, lease.lostSignal]);
    const outcome = await reconcile(parts, pipeline, { signal, onProgress: lease.show }).catch(
      (error: unknown): ReconcileOutcome => (stopSignal.aborted ? { status: "WAITING" } : outcomeOf(error)),
    );
    await lease.release();
    const kept = await store.reconciles.finish(claim, outcome);
    if (kept) parts.log.info({ ...ids, status: outcome.status }, "reconcile ended");
    else parts.log.warn(ids, "reconcile dropped: another runner took it over");
  } catch (error) {
    parts.log.error({ ...ids, err: error }, "reconcile left to another runner");
  } finally {
    await lease.release();
  }
}

/** Trouble that may pass, or a lack of time, says nothing about source and target; any other must be put right first. */
function outcomeOf(error: unknown): ReconcileOutcome {
  const { code, message, hint, retry } = databaseError(error, "compare source and target");
  const failure = { code, error: redact(`${message} ${hint}`) };
  const isOpen = mayPass(retry) || code === "STATEMENT_TIMEOUT";
  return { status: isOpen ? "INCONCLUSIVE" : "FAILED", failure };
}

interface HeldLease {
  readonly lostSignal: AbortSignal;
  show(rowsCompared: number): void;
  /** Resolves when nothing more is sent. */
  release(): Promise<void>;
}

/** A reconcile writes nothing, so losing its lease late does no harm; a plain timer is enough to hold it. */
function holdLease({ store, timing, log }: ReconcileSlotParts, claim: ReconcileClaim): HeldLease {
  const lost = new AbortController();
  const released = new AbortController();
  let rowsCompared = 0;
  const beat = async (): Promise<void> => {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await delay(timing.heartbeatMs, undefined, { signal: released.signal });
      await store.reconciles
        .extend(claim, timing.durationMs, rowsCompared)
        .then((held) => {
          if (!held) lost.abort();
        })
        // The next beat, or whoever takes over, puts it right.
        .catch((error: unknown) => log.warn({ err: error }, "the lease of a reconcile could not be extended"));
    }
  };
  const beating = beat().catch(() => undefined);
  return {
    lostSignal: lost.signal,
    show: (rows) => {
      rowsCompared = rows;
    },
    async release() {
      released.abort();
      await beating;
    },
  };
}
