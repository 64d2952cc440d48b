import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { monotonicMs } from "./heartbeat-messages.ts";

const CLEAN_EVERY_MS = 3_600_000;
/** Few enough that nobody waits for the locks. */
const MOST_RUNS_AT_ONCE = 500;

interface CleanerParts {
  readonly store: Pick<MetaStore, "housekeeping">;
  readonly log: Log;
  /** 0: runs are kept forever. */
  readonly runHistoryDays: number;
}

/** Deletes old runs once an hour, so that the meta-store does not grow forever. */
export class HistoryCleaner {
  readonly #parts: CleanerParts;
  #nextAt = monotonicMs();

  constructor(parts: CleanerParts) {
    this.#parts = parts;
  }

  /** Deletes a part of them at a time; while there are more, the next check comes soon. */
  async tick(): Promise<void> {
    const { store, log, runHistoryDays } = this.#parts;
    if (runHistoryDays === 0 || monotonicMs() < this.#nextAt) return;
    const deleted = await store.housekeeping.deleteOldRuns(runHistoryDays, MOST_RUNS_AT_ONCE);
    if (deleted > 0) log.info({ runs: deleted, older_than_days: runHistoryDays }, "old runs deleted");
    if (deleted < MOST_RUNS_AT_ONCE) this.#nextAt = monotonicMs() + CLEAN_EVERY_MS;
  }
}
