import type { BatchCounters } from "../domain/run.ts";
import type { BatchEffort } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

interface CommittedBatch {
  readonly batchNo: number;
  readonly counters: BatchCounters;
  readonly effort: BatchEffort;
}

/** What one run tells about itself while it goes on. */
export class RunReport {
  readonly log: Log;
  readonly #startedAt = performance.now();
  #batches = 0;
  #rowsRead = 0;
  #rowsWritten = 0;

  constructor(log: Log) {
    this.log = log;
  }

  /** Passes on what `move` gives, and tells of the batch that it committed; `undefined` means there was none. */
  async batch<T extends CommittedBatch | undefined>(move: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const moved = await move();
    if (moved !== undefined) this.#committed(moved, startedAt);
    return moved;
  }

  /** For the line that ends the run. */
  totals(): object {
    return {
      batches: this.#batches,
      rows_read: this.#rowsRead,
      rows_written: this.#rowsWritten,
      duration_ms: msSince(this.#startedAt),
    };
  }

  #committed({ batchNo, counters, effort }: CommittedBatch, startedAt: number): void {
    this.#batches += 1;
    this.#rowsRead += counters.rows_read;
    this.#rowsWritten += counters.rows_written;
    const { bytes, read_ms, transform_ms, write_ms } = effort;
    this.log.info(
      {
        batch: batchNo,
        ...withoutZeros(counters),
        bytes,
        read_ms: Math.round(read_ms),
        transform_ms: Math.round(transform_ms),
        write_ms: Math.round(write_ms),
        duration_ms: msSince(startedAt),
      },
      "batch committed",
    );
  }
}

function msSince(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}

/** Most counts of most batches are 0, and only make the line longer. */
function withoutZeros({ rows_read, rows_written, ...rare }: BatchCounters): Partial<BatchCounters> {
  const given = Object.entries(rare).filter(([, count]) => count > 0);
  return { rows_read, rows_written, ...Object.fromEntries(given) };
}
