import { isDeepStrictEqual } from "node:util";
import { batchOfRows, type RowBatch } from "../connectors/row-batch.ts";
import type { BatchPlace } from "../connectors/sink.ts";
import type { ReadBatch, SourceReader } from "../connectors/source-reader.ts";
import type { ScanPosition } from "../domain/checkpoint.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { endAskedFor } from "../domain/pipeline-status.ts";
import { repeatedKey } from "../domain/reading-plan.ts";
import type { Row } from "../domain/row.ts";
import { cursorIsNull } from "../domain/watermark.ts";
import type { BatchEffort } from "../meta-store/ports/batch-commit.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { type BatchFacts, type CommittedBatch, commitBatch, commitFenced } from "./commit.ts";
import { requireKeptKeys } from "./kept-keys.ts";
import type { EarlyEnd, Load } from "./run-context.ts";

/** Rows per batch while rows are refused: finding them takes time, and a request to pause waits for it. */
const MOST_ROWS_OF_CAREFUL_BATCH = 5000;

/** The one batch loop. Returns why it stopped early, or nothing when everything was read. */
export async function moveBatches(load: Load): Promise<EarlyEnd | undefined> {
  const { control, report, progress } = load;
  const mover = openMover(load);
  let asked: EarlyEnd | undefined;
  let isCareful = false;
  try {
    for (;;) {
      const end = asked ?? control.stopRequest();
      if (end !== undefined) return end;
      const { batchSize } = progress.limits;
      const limit: number = isCareful ? Math.min(batchSize, MOST_ROWS_OF_CAREFUL_BATCH) : batchSize;
      const batch = await report.batch(() => mover.move(limit));
      if (batch === undefined) return undefined;
      await faultPoint("batch_committed");
      asked = endAskedFor(batch.lease.status);
      isCareful = batch.counters.rows_rejected > 0;
    }
  } finally {
    await mover.close();
  }
}

/** Moves one batch from source to target; `undefined` when there is nothing left. */
interface Mover {
  move(limit: number): Promise<CommittedBatch | undefined>;
  close(): Promise<void>;
}

function openMover(load: Load): Mover {
  if (load.dataPath !== "push-down") return readAndWrite(load);
  const pull = pullOnServer(load);
  let fallback: Mover | undefined;
  return {
    async move(limit) {
      if (fallback !== undefined) return fallback.move(limit);
      try {
        return await pull(limit);
      } catch (error) {
        if (!isFaultOfRows(error)) throw error;
        // Single rows can only be told apart outside the server.
        load.report.log.warn({ reason: error.message }, "a row was refused; continuing by stream");
        fallback = readAndWrite(load, await load.writer.snapshot?.());
        return fallback.move(limit);
      }
    },
    close: async () => fallback?.close(),
  };
}

function isFaultOfRows(error: unknown): error is VitrinaError {
  return error instanceof VitrinaError && error.retry === "row";
}

function pullOnServer(load: Load): Mover["move"] {
  const { writer, read, progress } = load;
  let exhausted = false;
  return async (limit) => {
    if (writer.pull === undefined) throw new VitrinaError("INTERNAL", "This sink cannot pull.");
    if (exhausted) return undefined;
    const startedAt = performance.now();
    const effort = (): BatchEffort => ({
      bytes: 0,
      read_ms: 0,
      transform_ms: 0,
      write_ms: performance.now() - startedAt,
    });
    // Choosing this path ruled out rows without a key; allowing for them here would keep every batch from its index.
    const pulled = await writer.pull({ ...read, after: progress.position, nulls: "none" }, limit);
    if (pulled === undefined) {
      await writeTail(load);
      return undefined;
    }
    const { count, position } = pulled;
    exhausted = count < limit;
    return commitBatch(load, pulled, { read: count, transformed: count, position, effort });
  };
}

function readAndWrite(load: Load, snapshot?: string): Mover {
  const { read, progress, source } = load;
  let reader: SourceReader | undefined;
  let ahead: Promise<TimedBatch> | undefined;
  let exhausted = false;

  const readNext = async (limit: number): Promise<TimedBatch> => {
    const startedAt = performance.now();
    const nulls = load.incremental?.mayMeetNulls ? "first" : read.nulls;
    reader ??= await source.open({ ...read, nulls, after: progress.position, snapshot });
    const batch = await reader.read(limit);
    return { batch, readMs: performance.now() - startedAt };
  };

  return {
    async move(limit) {
      if (exhausted) return undefined;
      // The batch read ahead may have been requested with another size.
      const timed = await (ahead ?? readNext(limit));
      const { batch } = timed;
      ahead = undefined;
      await faultPoint("batch_read");
      exhausted = batch.isLast;
      if (!exhausted) {
        ahead = readNext(limit);
        ahead.catch(() => undefined); // handled when it is awaited
      }
      if (batch.count === 0) {
        await writeTail(load);
        return undefined;
      }
      return moveBatch(load, timed, exhausted);
    },
    close: async () => reader?.close(),
  };
}

interface TimedBatch {
  readonly batch: ReadBatch;
  readonly readMs: number;
}

async function moveBatch(load: Load, { batch, readMs }: TimedBatch, last: boolean): Promise<CommittedBatch> {
  requireNewKey(load, batch);
  requireCursor(load, batch);
  const position = positionOf(load, batch);
  const bytes = load.dataPath === "stream" ? bytesOf(batch) : 0;
  const startedAt = performance.now();
  const output = await transformed(load, batch);
  const transformedAt = performance.now();
  const effort = (): BatchEffort => ({
    bytes,
    read_ms: readMs,
    transform_ms: transformedAt - startedAt,
    write_ms: performance.now() - transformedAt,
  });
  const { batchNo, position: after } = load.progress;
  // Rows without a whole key, and none before them, stand for no range at all.
  const place = { batchNo: batchNo + 1, after, upTo: last ? null : (position ?? []) };
  return writeBatch(load, output, place, { read: batch.count, transformed: output.count, position, effort });
}

function bytesOf(batch: RowBatch): number {
  return batch.copyText().reduce((sum, piece) => sum + piece.length, 0);
}

export async function transformed(load: Load, batch: RowBatch): Promise<RowBatch> {
  const { transform, dataPath, control } = load;
  if (dataPath !== "rows") return batch;
  const output = batchOfRows(await transform.apply(batch.rows(), control.endSignal));
  await faultPoint("batch_transformed");
  requireKeptKeys(load, batch, output);
  return output;
}

/** Writes and commits a batch as a whole; if the target refuses any of its rows, a second time without them. */
export async function writeBatch(
  load: Load,
  batch: RowBatch,
  place: BatchPlace,
  facts: BatchFacts,
): Promise<CommittedBatch> {
  try {
    return await commitBatch(load, await load.writer.write(batch, place, false, facts.keys), facts);
  } catch (error) {
    if (!isFaultOfRows(error)) throw error;
    return commitBatch(load, await load.writer.write(batch, place, true, facts.keys), facts);
  }
}

/** The range after the last row has no rows in the source; a full load must account for that too. */
async function writeTail(load: Load): Promise<void> {
  if (load.incremental !== undefined) return;
  const place = { batchNo: load.progress.batchNo + 1, after: load.progress.position, upTo: null };
  await commitFenced(load, await load.writer.write(batchOfRows([]), place, false));
}

/** The position of the last row that has a full one. Rows that lack part of it are read again instead. */
function positionOf({ read, columns, progress }: Load, batch: RowBatch): ScanPosition | null {
  if (read.orderBy.length === 0) return null;
  const placeOf = (row: Row | undefined): (string | null)[] =>
    read.orderBy.map((name) => row?.[columns.findIndex((column) => column.name === name)] ?? null);
  const isWhole = (place: readonly (string | null)[]): place is string[] => !place.includes(null);
  const last = placeOf(batch.last());
  if (isWhole(last)) return last;
  return batch.rows().map(placeOf).findLast(isWhole) ?? progress.position;
}

/** Rows without the cursor come first, so that they are refused before anything is written. */
function requireCursor({ incremental, pipeline: { incremental_key: key }, columns }: Load, batch: RowBatch): void {
  if (key === null || !incremental?.mayMeetNulls) return;
  const value = batch.first()?.[columns.findIndex(({ name }) => name === key)];
  if (value === null) throw cursorIsNull(key);
}

/** Two rows with the same key may stand on either side of a batch boundary. Only the sink knows which texts are one key. */
function requireNewKey({ read, columns, progress, writer }: Load, batch: RowBatch): void {
  const first = batch.first();
  if (!read.eachOnce || first === undefined || progress.position === null) return;
  const key = read.orderBy.map((name) => first[columns.findIndex((column) => column.name === name)] ?? null);
  if (isDeepStrictEqual(key, progress.position)) throw repeatedKey(writer.key);
}
