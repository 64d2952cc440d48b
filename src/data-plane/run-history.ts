import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { monotonicMs } from "./heartbeat-messages.ts";

const CLEAN_EVERY_MS = 3_600_000;
/** So few that nobody waits for the locks. */
const MOST_RUNS_AT_ONCE = 500;

interface CleanerParts {
  readonly store: Pick<MetaStore, "housekeeping">;
  readonly log: Log;
  /** 0: none is ever too old. */
  readonly runHistoryDays: number;
}

/** Deletes the runs that nobody needs any more, once an hour, so that the meta-store does not grow for ever. */
export class HistoryCleaner {
  readonly #parts: CleanerParts;
  #nextAt = monotonicMs();

  constructor(parts: CleanerParts) {
    this.#parts = parts;
  }

  /** A part of them at a time; the next look comes soon while there are more. */
  async tick(): Promise<void> {
    const { store, log, runHistoryDays } = this.#parts;
    if (runHistoryDays === 0 || monotonicMs() < this.#nextAt) return;
    const deleted = await store.housekeeping.deleteOldRuns(runHistoryDays, MOST_RUNS_AT_ONCE);
    if (deleted > 0) log.info({ runs: deleted, older_than_days: runHistoryDays }, "old runs deleted");
    if (deleted < MOST_RUNS_AT_ONCE) this.#nextAt = monotonicMs() + CLEAN_EVERY_MS;
  }
}
