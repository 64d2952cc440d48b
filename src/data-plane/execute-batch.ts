import { isDeepStrictEqual } from "node:util";
import { batchOfRows, type RowBatch } from "../connectors/row-batch.ts";
import type { BatchResult, OpenTransaction } from "../connectors/sink.ts";
import type { ReadBatch, SourceReader } from "../connectors/source.ts";
import type { ScanPosition } from "../domain/checkpoint.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { endAskedFor } from "../domain/pipeline-status.ts";
import { repeatedKey } from "../domain/reading-plan.ts";
import type { Row } from "../domain/row.ts";
import type { BatchCounters } from "../domain/run.ts";
import type { BatchEffort, LeaseView, RefusedRow } from "../meta-store/ports/batch-commit.ts";
import { faultPoint } from "../observability/fault-points.ts";
import type { Log } from "../observability/log.ts";
import type { EarlyEnd, RunControl } from "./executor.ts";
import type { Load } from "./load.ts";
import type { RunReport } from "./run-report.ts";

/** Rows per batch while rows are refused: to find them takes longer, and a request to pause waits for it. */
const CAREFUL_BATCH = 5000;

/** The one batch loop. Returns why it stopped early, or nothing when everything was read. */
export async function moveBatches(load: Load, control: RunControl, report: RunReport): Promise<EarlyEnd | undefined> {
  const mover = openMover(load, control.endSignal, report.log);
  let asked: EarlyEnd | undefined;
  let batchSize = load.pipeline.batch_size;
  try {
    for (;;) {
      const end = asked ?? control.stopRequest();
      if (end !== undefined) return end;
      const batch = await report.batch(() => mover.move(batchSize));
      if (batch === undefined) return undefined;
      await faultPoint("batch_committed");
      const { lease } = batch;
      asked = endAskedFor(lease.status);
      batchSize = batch.counters.rows_rejected > 0 ? Math.min(lease.batchSize, CAREFUL_BATCH) : lease.batchSize;
      load.limits.maxRejects = lease.maxRejects;
      load.limits.deletions.maxDeletePercent = lease.maxDeletePercent;
    }
  } finally {
    await mover.close();
  }
}

interface MovedBatch {
  readonly lease: LeaseView;
  readonly batchNo: number;
  readonly counters: BatchCounters;
  readonly effort: BatchEffort;
}

/** Moves one batch from source to target; `undefined` when there is nothing left. */
interface Mover {
  move(limit: number): Promise<MovedBatch | undefined>;
  close(): Promise<void>;
}

function openMover(load: Load, lost: AbortSignal, log: Log): Mover {
  if (load.dataPath !== "push-down") return readAndWrite(load, lost);
  const pull = pullOnServer(load);
  let fallback: Mover | undefined;
  return {
    async move(limit) {
      if (fallback !== undefined) return fallback.move(limit);
      try {
        return await pull(limit);
      } catch (error) {
        if (!(error instanceof VitrinaError) || error.retry !== "row") throw error;
        // Single rows can only be told apart outside the server.
        log.warn({ reason: error.message }, "a row was refused: going on by stream");
        fallback = readAndWrite(load, lost, await load.writer.snapshot?.());
        return fallback.move(limit);
      }
    },
    close: async () => fallback?.close(),
  };
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
    const pulled = await writer.pull(
      // Rows without a key were looked for when this path was chosen; asking again would cost every batch its index.
      { ...read, after: progress.position, nulls: "none" },
      limit,
      async (transaction, rows, result) => {
        const facts = { read: rows.count, transformed: rows.count, position: rows.position, effort: effort() };
        return { position: rows.position, counters: await record(load, transaction, result, facts) };
      },
    );
    if (pulled === undefined) {
      await writeTail(load);
      return undefined;
    }
    exhausted = pulled.count < limit;
    await faultPoint("data_committed");
    const { position, counters } = pulled.result;
    advance(load, position, 0);
    return { lease: await load.checkpointer.committed(), batchNo: progress.batchNo, counters, effort: effort() };
  };
}

function readAndWrite(load: Load, lost: AbortSignal, snapshot?: string): Mover {
  const { read, progress, source } = load;
  let reader: SourceReader | undefined;
  let ahead: Promise<TimedBatch> | undefined;
  let exhausted = false;

  const readNext = async (limit: number): Promise<TimedBatch> => {
    const startedAt = performance.now();
    reader ??= await source.open({ ...read, after: progress.position, snapshot });
    const batch = await reader.read(limit);
    return { batch, readMs: performance.now() - startedAt };
  };

  return {
    async move(limit) {
      if (exhausted) return undefined;
      // The batch read ahead may have been asked for with another size.
      const timed = await (ahead ?? readNext(limit));
      const { batch } = timed;
      ahead = undefined;
      await faultPoint("batch_read");
      exhausted = batch.isLast;
      if (!exhausted) {
        ahead = readNext(limit);
        ahead.catch(() => undefined); // met when it is awaited
      }
      if (batch.count === 0) {
        await writeTail(load);
        return undefined;
      }
      return writeBatch(load, timed, exhausted, lost);
    },
    close: async () => reader?.close(),
  };
}

interface TimedBatch {
  readonly batch: ReadBatch;
  readonly readMs: number;
}

async function writeBatch(
  load: Load,
  { batch, readMs }: TimedBatch,
  last: boolean,
  lost: AbortSignal,
): Promise<MovedBatch> {
  requireNewKey(load, batch);
  const { count } = batch;
  const position = positionOf(load, batch);
  const bytes = load.dataPath === "stream" ? bytesOf(batch) : 0;
  const startedAt = performance.now();
  const output = await transformed(load, batch, lost);
  const transformedAt = performance.now();
  const effort = (): BatchEffort => ({
    bytes,
    read_ms: readMs,
    transform_ms: transformedAt - startedAt,
    write_ms: performance.now() - transformedAt,
  });
  const place = { batchNo: load.progress.batchNo + 1, after: load.progress.position, upTo: last ? null : position };
  const counters = await load.writer.write(output, place, (transaction, result) => {
    const facts = { read: count, transformed: output.count, position, effort: effort() };
    return record(load, transaction, result, facts);
  });
  await faultPoint("data_committed");
  const lease = await load.checkpointer.committed();
  advance(load, position, counters.rows_rejected);
  return { lease, batchNo: place.batchNo, counters, effort: effort() };
}

function bytesOf(batch: RowBatch): number {
  return batch.copyText().reduce((sum, piece) => sum + piece.length, 0);
}

export async function transformed(
  { transform, dataPath }: Load,
  batch: RowBatch,
  lost: AbortSignal,
): Promise<RowBatch> {
  if (dataPath !== "rows") return batch;
  const rows = await transform.apply(batch.rows(), lost);
  await faultPoint("batch_transformed");
  return batchOfRows(rows);
}

/** The range behind the last row has no rows in the source; a full load must see that too. */
async function writeTail(load: Load): Promise<void> {
  if (load.incremental !== undefined) return;
  const place = { batchNo: load.progress.batchNo + 1, after: load.progress.position, upTo: null };
  await load.writer.write(batchOfRows([]), place, load.checkpointer.fenceIn);
}

/** Where the last row stands that has a place in the order. One that lacks part of it is met again instead. */
function positionOf({ read, columns, progress }: Load, batch: RowBatch): ScanPosition | null {
  if (read.orderBy.length === 0) return null;
  const placeOf = (row: Row | undefined): (string | null)[] =>
    read.orderBy.map((name) => row?.[columns.findIndex((column) => column.name === name)] ?? null);
  const isWhole = (place: readonly (string | null)[]): place is string[] => !place.includes(null);
  const last = placeOf(batch.last());
  if (isWhole(last)) return last;
  return batch.rows().map(placeOf).findLast(isWhole) ?? progress.position;
}

/** Two rows with one key may stand on both sides of a batch's end. */
function requireNewKey({ read, columns, progress, writer }: Load, batch: RowBatch): void {
  const first = batch.first();
  if (!read.eachOnce || first === undefined || progress.position === null) return;
  const key = read.orderBy.map((name) => first[columns.findIndex((column) => column.name === name)] ?? null);
  if (isDeepStrictEqual(key, progress.position)) throw repeatedKey(writer.key);
}

export function advance({ progress }: Load, position: ScanPosition | null, rejected: number): void {
  progress.position = position;
  progress.batchNo += 1;
  progress.rejected += rejected;
}

/** How many of the rows that failed a run are kept with it. */
const SHOWN_REJECTS = 100;

/** Nothing of the batch is committed, so what it was refused must be kept apart from it. */
export class TooManyRejects extends VitrinaError {
  readonly rejects: readonly RefusedRow[];

  constructor(message: string, rejects: readonly RefusedRow[]) {
    super("TOO_MANY_REJECTS", message);
    this.rejects = rejects;
  }
}

interface BatchFacts {
  readonly read: number;
  readonly transformed: number;
  readonly position: ScanPosition | null;
  readonly effort: BatchEffort;
  /** Earlier rejects that this batch settles. Refused again, they replace themselves. */
  readonly settledRejects?: readonly number[];
}

export async function record(
  load: Load,
  transaction: OpenTransaction,
  { rejects, ...counts }: BatchResult,
  { read, transformed, position, effort, settledRejects = [] }: BatchFacts,
): Promise<BatchCounters> {
  const { limits, progress } = load;
  if (load.read.eachOnce && counts.rows_deduplicated > 0) throw repeatedKey(load.writer.key);
  if (progress.rejected + rejects.length - settledRejects.length > limits.maxRejects) {
    const first = rejects.slice(0, SHOWN_REJECTS).map((reject) => describeReject(load, reject));
    const last = rejects.at(-1)?.reason;
    throw new TooManyRejects(
      `The target refused more than ${limits.maxRejects} rows; the last because: ${last}`,
      first,
    );
  }
  const counters = {
    ...counts,
    rows_read: read,
    rows_rejected: rejects.length,
    rows_dropped: Math.max(0, read - transformed),
    rows_added: Math.max(0, transformed - read),
  };
  const fillsTarget = load.incremental !== undefined && counters.rows_written + counters.rows_unchanged > 0;
  await load.checkpointer.recordIn(transaction, {
    position,
    fingerprint: progress.fingerprint,
    expectedBatchNo: progress.batchNo,
    safePoint: load.incremental?.safePoint ?? null,
    effort,
    rejects: rejects.map((reject) => describeReject(load, reject)),
    settledRejects,
    fillsTarget,
    counters,
  });
  if (fillsTarget && load.targetMark !== null) load.targetMark = { ...load.targetMark, filled: true };
  return counters;
}

function describeReject({ transform, writer }: Load, { row, code, error }: BatchResult["rejects"][number]): RefusedRow {
  const values = Object.fromEntries(transform.columns.map(({ name }, index) => [name, row[index] ?? null]));
  const key = Object.fromEntries(writer.key.map((name) => [name, values[name] ?? null]));
  return { key, row: values, code, error };
}
