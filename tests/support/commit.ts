import { batchOfRows } from "../../src/connectors/row-batch.ts";
import type {
  BatchPlace,
  BatchResult,
  DeletionGuard,
  SinkWriter,
  TargetKey,
  WrittenBatch,
} from "../../src/connectors/sink.ts";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { Row } from "../../src/domain/row.ts";

/** What the engine does with a writer, without a checkpoint in a meta-store. */

export const GUARD: DeletionGuard = { allowEmpty: false, maxDeletePercent: 50 };

export async function commitBegin(writer: SinkWriter): Promise<void> {
  const prepared = await writer.begin();
  await prepared?.commit();
}

/** `record` is called before the commit, where the engine records the checkpoint. */
export async function commitRows(
  writer: SinkWriter,
  rows: readonly Row[],
  place: BatchPlace = { batchNo: 1, after: null, upTo: null },
  record: (written: WrittenBatch) => Promise<unknown> = async () => undefined,
  keys?: readonly TargetKey[],
): Promise<BatchResult> {
  const batch = batchOfRows(rows);
  const commit = async (setRefusedAside: boolean): Promise<BatchResult> => {
    const written = await writer.write(batch, place, setRefusedAside, keys);
    try {
      await record(written);
      await written.commit();
      return written.result;
    } catch (error) {
      await written.rollback();
      throw error;
    }
  };
  return commit(false).catch((error: unknown) => {
    if (error instanceof VitrinaError && error.retry === "row") return commit(true);
    throw error;
  });
}

export async function commitFinish(writer: SinkWriter, guard = GUARD): Promise<number> {
  const finished = await writer.finish(guard);
  await finished.commit();
  return finished.rows_deleted;
}

export async function commitGiveUp(writer: SinkWriter): Promise<void> {
  await (await writer.giveUp()).commit();
}
