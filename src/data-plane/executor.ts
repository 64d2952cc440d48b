import type { Connectors } from "../connectors/index.ts";
import type { SinkWriter } from "../connectors/sink.ts";
import type { Column, Row, SourceReader } from "../connectors/source.ts";
import { configFingerprint, resumePosition, type ScanPosition } from "../domain/checkpoint.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { TargetAllowList } from "../domain/target.ts";
import { parseTaskPlan, type TaskPlan } from "../domain/task-plan.ts";
import type { BatchCommit, Claim, LeaseView } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

export interface ExecutorParts {
  readonly connectors: Connectors;
  readonly targets: TargetAllowList;
  batchCommit(claim: Claim): BatchCommit;
}

/** Asked between two batches; what it answers is done before the next batch is read. */
export type StopRequest = () => "pause" | "hand_back" | undefined;

export type ExecutionEnd = "finished" | "paused" | "handed_back";

/** Runs one claimed pipeline to its end, its pause or its error: plan → prepare → read → write → checkpoint. */
export async function executePipeline(
  parts: ExecutorParts,
  claim: Claim,
  stopRequest: StopRequest,
  log: Log,
): Promise<ExecutionEnd> {
  const load = await openLoad(parts, claim);
  try {
    return await moveBatches(load, parts.batchCommit(claim), claim, stopRequest, log);
  } finally {
    await Promise.allSettled([load.reader?.close(), load.writer.close()]);
  }
}

interface Load {
  readonly reader: SourceReader;
  readonly writer: SinkWriter;
  readonly fingerprint: string;
  readonly positionOf: (row: Row) => ScanPosition;
}

async function openLoad({ connectors, targets }: ExecutorParts, { pipeline, checkpoint }: Claim): Promise<Load> {
  const plan = parseTaskPlan(pipeline, targets);
  requireSupported(plan, pipeline.mode);
  const source = connectors.source(pipeline.source_connection);
  if (source === undefined) {
    throw new VitrinaError(
      "SOURCE_CONNECTION_UNKNOWN",
      `There is no source connection "${pipeline.source_connection}".`,
    );
  }
  const sink = connectors.sink(plan.target.kind);
  if (sink === undefined)
    throw new VitrinaError("NOT_SUPPORTED", `Targets of kind ${plan.target.kind} cannot be written.`);

  const columns = await source.describe(plan.readerQuery);
  const writer = await sink.prepare({
    target: plan.target,
    columns,
    key: pipeline.target_key,
    createTarget: pipeline.create_target,
  });
  try {
    const fingerprint = configFingerprint(pipeline);
    const after = resumePosition(checkpoint, fingerprint);
    const reader = await source.open({ query: plan.readerQuery, columns, orderBy: writer.key, after });
    return { reader, writer, fingerprint, positionOf: positionReader(columns, writer.key) };
  } catch (error) {
    await writer.close();
    throw error;
  }
}

function requireSupported(plan: TaskPlan, mode: string): void {
  if (mode !== "full") throw new VitrinaError("NOT_SUPPORTED", `The mode ${mode} cannot be run yet.`);
  if (plan.transforms.length > 0) throw new VitrinaError("NOT_SUPPORTED", "Code tasks cannot be run yet.");
}

function positionReader(columns: readonly Column[], orderBy: readonly string[]): (row: Row) => ScanPosition {
  const indexes = orderBy.map((name) => columns.findIndex((column) => column.name === name));
  // The target refuses a row without a key before its position is ever kept.
  return (row) => indexes.map((index) => row[index] ?? "");
}

async function moveBatches(
  { reader, writer, fingerprint, positionOf }: Load,
  batchCommit: BatchCommit,
  claim: Claim,
  stopRequest: StopRequest,
  log: Log,
): Promise<ExecutionEnd> {
  let batchNo = claim.checkpoint.batchNo;
  let lease: LeaseView = { status: "RUNNING", batchSize: claim.pipeline.batch_size };
  for (;;) {
    const request = lease.status === "PAUSE_REQUESTED" ? "pause" : stopRequest();
    if (request !== undefined) return request === "pause" ? "paused" : "handed_back";

    const startedAt = performance.now();
    const { batchSize } = lease;
    const rows = await reader.read(batchSize);
    const last = rows.at(-1);
    if (last === undefined) return "finished";
    const readAt = performance.now();

    lease = await writer.write(rows, (transaction, counts) =>
      batchCommit.recordIn(transaction, {
        position: positionOf(last),
        fingerprint,
        expectedBatchNo: batchNo,
        counters: { rows_read: rows.length, rows_rejected: 0, rows_dropped: 0, ...counts },
      }),
    );
    batchNo += 1;
    log.info(
      {
        batch: batchNo,
        rows: rows.length,
        read_ms: round(readAt - startedAt),
        write_ms: round(performance.now() - readAt),
      },
      "batch committed",
    );
    if (rows.length < batchSize) return "finished";
  }
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
