import type { BatchProgress } from "../meta-store/meta-store.ts";
import type { RunObserver } from "../observability/runner-metrics.ts";
import type { Checkpointer } from "./checkpointer.ts";

/** Every batch of every data path passes here: told only after its commit, as the run's own record counts it. */
export function observedCheckpointer(inner: Checkpointer, observer: RunObserver): Checkpointer {
  let recorded: BatchProgress | undefined;
  let deleted = 0;
  return {
    fenceIn: (transaction) => inner.fenceIn(transaction),
    async recordIn(transaction, progress) {
      await inner.recordIn(transaction, progress);
      recorded = progress;
    },
    async committed() {
      const lease = await inner.committed();
      if (recorded !== undefined) observer.batchCommitted(recorded.counters, recorded.effort);
      recorded = undefined;
      return lease;
    },
    async endLoadIn(transaction, result) {
      await inner.endLoadIn(transaction, result);
      deleted = result.rows_deleted;
    },
    async loadCommitted() {
      await inner.loadCommitted();
      observer.rowsDeleted(deleted);
      deleted = 0;
    },
  };
}
