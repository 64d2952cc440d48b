import type { SinkWriter } from "../connectors/sink.ts";
import type { ReadRequest, Source } from "../connectors/source.ts";
import { configFingerprint, resumePosition, type ScanPosition } from "../domain/checkpoint.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import type { Column } from "../domain/row.ts";
import { parseTaskPlan, type TaskPlan } from "../domain/task-plan.ts";
import type { Candidate, Watermark } from "../domain/watermark.ts";
import type { BatchCommit, Claim, PipelineState } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { openChain } from "../tasks/open-chain.ts";
import type { Transform } from "../tasks/task.ts";
import { besideCheckpointer, type Checkpointer, followingCheckpointer, sharedCheckpointer } from "./checkpointer.ts";
import type { ExecutorParts } from "./executor.ts";
import { openSource } from "./open-source.ts";

/** Everything a run needs to move its batches, opened and checked before the first row is read. */
export interface Load {
  readonly pipeline: Pipeline;
  readonly source: Source;
  readonly writer: SinkWriter;
  /** The code tasks as one; its columns are the target's. */
  readonly transform: Transform;
  /** False: rows reach the target as the query gave them. */
  readonly hasTasks: boolean;
  /** Of the query. */
  readonly columns: readonly Column[];
  readonly dataPath: DataPath;
  readonly read: Omit<ReadRequest, "after">;
  /** False when an unfinished full load is continued. */
  readonly startsAnew: boolean;
  readonly incremental: IncrementalLoad | undefined;
  readonly progress: Progress;
  readonly checkpointer: Checkpointer;
  close(): Promise<void>;
}

/**
 * - `push-down`: inside one database; rows never reach this process.
 * - `stream`: from one database to another as bytes that nobody looks at.
 * - `rows`: through code tasks, or into a sink that wants values.
 */
type DataPath = "push-down" | "stream" | "rows";

interface IncrementalLoad {
  readonly keyType: string;
  readonly previous: Watermark;
  readonly candidate: Candidate | null;
  readonly safePoint: string;
}

/** Moves with every batch. */
interface Progress {
  position: ScanPosition | null;
  batchNo: number;
  rejected: number;
  readonly fingerprint: string;
}

export async function openLoad(
  parts: ExecutorParts,
  claim: Claim,
  commit: BatchCommit,
  lost: AbortSignal,
  log: Log,
): Promise<Load> {
  const { pipeline } = claim;
  const plan = parseTaskPlan(pipeline, parts.targets);
  const { source, columns } = await openSource(parts, pipeline, plan);
  const opened: { close(): Promise<void> }[] = [source];
  try {
    const transform = await openChain(parts.tasks, plan.transforms, columns);
    opened.push(transform);
    const { writer, together } = await openWriter(parts, plan, claim, transform.columns, commit, lost);
    opened.push(writer);
    const fingerprint = configFingerprint(pipeline);
    const state = await currentState(parts, claim, writer, commit);
    const incremental = await openIncremental(source, plan, columns, pipeline, state, fingerprint, log);
    const read = readRequest(plan, columns, pipeline, writer.key);
    const after = startPosition(pipeline, state, fingerprint, writer.resumed);
    return {
      pipeline,
      source,
      writer,
      transform,
      hasTasks: plan.transforms.length > 0,
      columns,
      dataPath: await chooseDataPath(parts, source, writer, plan, { ...read, after }, pipeline),
      read,
      startsAnew: pipeline.mode === "incremental" || after === null,
      incremental,
      progress: { position: after, batchNo: state.batchNo, rejected: 0, fingerprint },
      checkpointer: chooseCheckpointer(writer, together, commit),
      close: () => closeAll(opened),
    };
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

export async function closeAll(opened: readonly { close(): Promise<void> }[]): Promise<void> {
  await Promise.allSettled(opened.map((part) => part.close()));
}

/** A target elsewhere may be one batch ahead of the meta-store: what is beside the data is the truth. */
async function currentState(
  { store }: ExecutorParts,
  { pipeline }: Claim,
  { kept }: SinkWriter,
  commit: BatchCommit,
): Promise<PipelineState> {
  const state = await store.getState(pipeline.id);
  if (kept === undefined || kept.found.batchNo <= state.batchNo) return state;
  await commit.catchUp(kept.found);
  return store.getState(pipeline.id);
}

async function openIncremental(
  source: Source,
  plan: TaskPlan,
  columns: readonly Column[],
  pipeline: Pipeline,
  state: PipelineState,
  fingerprint: string,
  log: Log,
): Promise<IncrementalLoad | undefined> {
  const { mode, name, incremental_key: key, incremental_id_key: idKey, null_cursor, lookback_seconds } = pipeline;
  if (mode !== "incremental" || key === null) return undefined;
  if (state.watermarkFingerprint !== null && state.watermarkFingerprint !== fingerprint) {
    throw new VitrinaError(
      "STATE_OF_OTHER_CONFIG",
      `The checkpoint of ${name} was made by another query, key or target than the present one.`,
    );
  }
  await source.requireUsableCursor(plan.readerQuery, columns, { key, idKey, nulls: null_cursor });
  const keyType = columns.find((column) => column.name === key)?.type ?? "text";
  const start = { keyType, previous: state.watermark, candidate: state.candidate };
  const resumed = resumePosition(state, fingerprint) !== null && state.safePoint !== null;
  if (resumed) return { ...start, safePoint: state.safePoint as string };
  const horizon = await source.takeHorizon(lookback_seconds * 1000);
  if (horizon.method === "look-back")
    log.warn({ reason: horizon.reason }, "late commits are covered by a look-back only");
  return { ...start, safePoint: horizon.safe };
}

async function openWriter(
  { connectors, store }: ExecutorParts,
  { target, transforms }: TaskPlan,
  { pipeline, runId, epoch, checkpoint }: Claim,
  columns: readonly Column[],
  commit: BatchCommit,
  lost: AbortSignal,
): Promise<{ writer: SinkWriter; together: boolean }> {
  const sink = connectors.sink(target.kind);
  const [here, there] = await Promise.all([store.databaseId(), sink.databaseId()]);
  const together = here !== null && here === there;
  const writer = await sink.open({
    target,
    columns,
    key: pipeline.target_key,
    createTarget: pipeline.create_target,
    addColumns: pipeline.add_columns,
    load:
      pipeline.mode === "full"
        ? { kind: "replace", loadId: pipeline.id, inKeyOrder: transforms.length === 0 }
        : { kind: "upsert" },
    guard: { allowEmpty: pipeline.allow_empty, maxDeletePercent: pipeline.max_delete_percent },
    options: pipeline.target_options,
    claim: { pipelineId: pipeline.id, runId, epoch, batchNo: checkpoint.batchNo },
    together,
    lost,
    requireLease: commit.fence,
  });
  return { writer, together };
}

function chooseCheckpointer({ kept }: SinkWriter, together: boolean, commit: BatchCommit): Checkpointer {
  if (together) return sharedCheckpointer(commit);
  return kept === undefined ? followingCheckpointer(commit) : besideCheckpointer(kept, commit);
}

/** A full load reads in the order of the target's key; an incremental one in the order of its cursor. */
export function readRequest(
  plan: TaskPlan,
  columns: readonly Column[],
  { mode, incremental_key, incremental_id_key }: Pipeline,
  key: readonly string[],
): Omit<ReadRequest, "after"> {
  const query = plan.readerQuery;
  if (mode === "incremental") {
    const orderBy = [incremental_key, incremental_id_key].filter((name) => name !== null);
    return { query, columns, orderBy, inclusive: incremental_id_key === null, nulls: "excluded" };
  }
  // A transform may make the key; then the reader has no order to continue in, and an interrupted load starts over.
  const readable = key.every((name) => columns.some((column) => column.name === name));
  return { query, columns, orderBy: readable ? key : [], inclusive: false, nulls: "last" };
}

function startPosition(
  { mode }: Pipeline,
  state: PipelineState,
  fingerprint: string,
  writerResumed: boolean,
): ScanPosition | null {
  const unfinished = resumePosition(state, fingerprint);
  if (mode === "full") return writerResumed ? unfinished : null;
  if (unfinished !== null) return unfinished;
  const { value, id } = state.watermark;
  if (value === null) return null;
  return id === null ? [value] : [value, id];
}

async function chooseDataPath(
  { connectors }: ExecutorParts,
  source: Source,
  writer: SinkWriter,
  { transforms, target }: TaskPlan,
  request: ReadRequest,
  { batch_size }: Pipeline,
): Promise<DataPath> {
  if (transforms.length > 0 || writer.takes === "rows") return "rows";
  if (writer.pull === undefined || request.inclusive) return "stream";
  const [from, to] = await Promise.all([source.databaseId(), connectors.sink(target.kind).databaseId()]);
  if (from === null || from !== to) return "stream";
  return (await source.canSeek(request, batch_size)) ? "push-down" : "stream";
}
