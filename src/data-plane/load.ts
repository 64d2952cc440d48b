import type { SinkWriter } from "../connectors/sink.ts";
import type { ReadRequest, Source } from "../connectors/source.ts";
import { configFingerprint, resumePosition, type ScanPosition } from "../domain/checkpoint.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import {
  type ChosenDataPath,
  chooseDataPath,
  type DataPath,
  readOrder,
  requireStateOf,
  startPosition,
  wantsEachKeyOnce,
  watermarkPosition,
} from "../domain/reading-plan.ts";
import type { Column } from "../domain/row.ts";
import type { TargetMark } from "../domain/target-mark.ts";
import { parseTaskPlan, type TaskPlan } from "../domain/task-plan.ts";
import { type Candidate, type Horizon, isTimeType, type Watermark } from "../domain/watermark.ts";
import type { BatchCommit } from "../meta-store/ports/batch-commit.ts";
import type { Claim } from "../meta-store/ports/run-queue.ts";
import type { PipelineState } from "../meta-store/ports/state.ts";
import type { Log } from "../observability/log.ts";
import { databaseError } from "../postgres/errors.ts";
import { unseenTables } from "../sql-guard/unseen-tables.ts";
import { openChain } from "../tasks/open-chain.ts";
import type { Transform } from "../tasks/task.ts";
import { besideCheckpointer, type Checkpointer, followingCheckpointer, sharedCheckpointer } from "./checkpointer.ts";
import type { ExecutorParts, RunControl } from "./executor.ts";
import { openSource } from "./open-source.ts";
import { requireSourceOf } from "./source-change.ts";
import { requireTargetOf } from "./target-loss.ts";

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
  /** Why this path, for people. */
  readonly dataPathReason: string;
  /** How many rows the planner of the source expects this run to read. */
  readonly estimatedRows: number | null;
  /** May be changed while the run goes on; each batch commit brings them back. */
  readonly limits: Limits;
  readonly read: Omit<ReadRequest, "after">;
  /** False when an unfinished full load is continued. */
  readonly startsAnew: boolean;
  /** An unfinished load is continued. */
  readonly resumed: boolean;
  /** What a person should know about this run. */
  readonly notes: readonly string[];
  /** Of the target, when the checkpoint of this load began; null while that is not known. */
  targetMark: TargetMark | null;
  readonly incremental: IncrementalLoad | undefined;
  readonly progress: Progress;
  readonly checkpointer: Checkpointer;
  close(): Promise<void>;
}

interface IncrementalLoad {
  readonly keyType: string;
  readonly previous: Watermark;
  readonly candidate: Candidate | null;
  readonly safePoint: string;
  readonly ceiling: string | null;
  /** False: the watermark is the value alone. */
  readonly keepsId: boolean;
  readonly notes: readonly string[];
}

interface Limits {
  maxRejects: number;
  readonly deletions: { readonly allowEmpty: boolean; maxDeletePercent: number };
}

/** Moves with every batch. */
interface Progress {
  position: ScanPosition | null;
  batchNo: number;
  rejected: number;
  readonly fingerprint: string;
}

type EndSignals = Pick<RunControl, "endSignal" | "cancelSignal">;

export async function openLoad(
  parts: ExecutorParts,
  claim: Claim,
  commit: BatchCommit,
  control: EndSignals,
  log: Log,
): Promise<Load> {
  const { pipeline } = claim;
  const plan = parseTaskPlan(pipeline, parts.targets);
  const { source, columns } = await openSource(parts, pipeline, plan, control.cancelSignal);
  const opened: { close(): Promise<void> }[] = [source];
  try {
    const transform = await openChain(parts.tasks, plan.transforms, columns);
    opened.push(transform);
    const limits = limitsOf(pipeline);
    const writer = await openWriter(
      parts,
      plan,
      claim,
      withPlainTypes(transform.columns, columns),
      limits,
      commit,
      control,
    );
    opened.push(writer);
    const fingerprint = configFingerprint(pipeline);
    const known = await currentState(parts, claim, writer, commit);
    requireStateOf(pipeline, known, fingerprint);
    const ofTarget = await requireTargetOf(parts.store, pipeline, writer, transform.columns, known, commit, log);
    const { state, startsOver } = await requireSourceOf(
      parts.store,
      pipeline,
      plan.readerQuery,
      source,
      writer,
      ofTarget,
      commit,
      log,
    );
    const incremental = await openIncremental(source, plan, columns, pipeline, state, fingerprint, log);
    const order = await readOrder({
      config: pipeline,
      columns,
      key: writer.key,
      hasTransforms: plan.transforms.length > 0,
      isUnique: (names) => source.isUnique(plan.readerQuery, names),
    });
    const eachOnce = wantsEachKeyOnce(pipeline, plan.transforms.length > 0);
    const read = { query: plan.readerQuery, columns, ...order, eachOnce };
    const after = startPosition(pipeline, state, fingerprint, writer.resumed);
    const resumed = after !== null && after === resumePosition(state, fingerprint);
    const { dataPath, reason } = await dataPathOf(parts, source, writer, plan, { ...read, after }, pipeline);
    return {
      pipeline,
      source,
      writer,
      transform,
      hasTasks: plan.transforms.length > 0,
      columns,
      dataPath,
      dataPathReason: reason,
      estimatedRows: await source.estimateRows({ ...read, after }),
      limits,
      read,
      startsAnew: pipeline.mode === "incremental" || after === null,
      resumed,
      notes: [...notesOf(pipeline, resumed, startsOver), ...(incremental?.notes ?? []), ...(writer.notes ?? [])],
      targetMark: state.targetMark,
      incremental,
      progress: { position: after, batchNo: state.batchNo, rejected: 0, fingerprint },
      checkpointer: chooseCheckpointer(writer, commit),
      close: () => closeAll(opened),
    };
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** The rest of a full load is read as the source is now, and not as it was when the load began. */
export function isInParts({ resumed, incremental }: Pick<Load, "resumed" | "incremental">): boolean {
  return resumed && incremental === undefined;
}

function notesOf({ mode }: Pipeline, resumed: boolean, startsOver: string | undefined): string[] {
  if (startsOver !== undefined) return [startsOver];
  if (!resumed || mode !== "full") return [];
  return ["The load was interrupted, so its rows are from several moments. A further run follows by itself."];
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
  const state = await store.state.get(pipeline.id);
  if (kept === undefined || kept.found.batchNo <= state.batchNo) return state;
  await commit.catchUp(kept.found);
  return store.state.get(pipeline.id);
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
  const { mode, incremental_key: key, incremental_id_key: idKey, null_cursor, lookback_numbers } = pipeline;
  if (mode !== "incremental" || key === null) return undefined;
  const cursor = { key, idKey, nulls: null_cursor, lookbackNumbers: lookback_numbers, start: state.watermark };
  await source.requireUsableCursor(plan.readerQuery, columns, cursor);
  const keyType = columns.find((column) => column.name === key)?.type ?? "text";
  await tellUnseen(source, plan, key, log);
  // Later transactions may use a number again that is not unique: then all rows that have the last one are read again.
  const keepsId = isTimeType(keyType) || (await source.isUnique(plan.readerQuery, [key]));
  const start = { keyType, keepsId, previous: state.watermark, candidate: state.candidate };
  const resumed = resumePosition(state, fingerprint) !== null && state.safePoint !== null;
  if (resumed) return { ...start, safePoint: state.safePoint as string, ceiling: null, notes: [] };
  const horizon = await takeHorizon(source, plan.readerQuery, columns, pipeline, state);
  if (horizon.method === "look-back")
    log.warn({ reason: horizon.reason }, "late commits are covered by a look-back only");
  const notes = horizon.behindAll ? [behindAll(key)] : [];
  return { ...start, safePoint: horizon.safe, ceiling: horizon.ceiling, notes };
}

/** Nobody can tell here whether rows were deleted, or are going to come again with lower numbers. */
function behindAll(key: string): string {
  return `The source has no row at or behind the position of this load. If values of "${key}" are given out again, since it was restored or its sequence set back, such rows are not read: reset the state.`;
}

/** Once per run, for whoever wonders why the mart does not follow. A run does not fail for want of this. */
async function tellUnseen(source: Source, { readerQuery }: TaskPlan, key: string, log: Log): Promise<void> {
  const tables = await source
    .lendSession((session) => unseenTables(session, readerQuery, key))
    .catch((error: unknown) => {
      const reason = databaseError(error, "look at the query").message;
      log.warn({ reason }, "it is unknown which tables' changes are not seen by this load");
      return [];
    });
  if (tables.length > 0)
    log.warn({ tables, incremental_key: key }, "changes of these tables are not seen by this load");
}

/** A stamp is compared with the horizon itself. Of any other key the greatest value is wanted that is settled. */
function takeHorizon(
  source: Source,
  query: string,
  columns: readonly Column[],
  { incremental_key: key, lookback_seconds, lookback_numbers }: Pipeline,
  { watermark }: PipelineState,
): Promise<Horizon> {
  const column = columns.find(({ name }) => name === key);
  const isStamp = column === undefined || isTimeType(column.type);
  const after = watermarkPosition({ lookback_numbers }, watermark);
  return source.takeHorizon(lookback_seconds * 1000, isStamp ? undefined : { query, column, after });
}

/** A code task passes types on by their names only. */
export function withPlainTypes(columns: readonly Column[], ofQuery: readonly Column[]): readonly Column[] {
  return columns.map((column) => {
    const plainType = ofQuery.find(({ type }) => type === column.type)?.plainType;
    return plainType === undefined ? column : { ...column, plainType };
  });
}

function limitsOf({ max_rejects, allow_empty, max_delete_percent }: Pipeline): Limits {
  return {
    maxRejects: max_rejects,
    deletions: { allowEmpty: allow_empty, maxDeletePercent: max_delete_percent },
  };
}

async function openWriter(
  { connectors, store }: ExecutorParts,
  { target, transforms }: TaskPlan,
  { pipeline, runId, trigger, epoch, checkpoint }: Claim,
  columns: readonly Column[],
  limits: Limits,
  commit: BatchCommit,
  { endSignal, cancelSignal }: EndSignals,
): Promise<SinkWriter> {
  const sink = await connectors.sink(target);
  return sink.open({
    target,
    columns,
    key: pipeline.target_key,
    createTarget: pipeline.create_target,
    addColumns: pipeline.add_columns,
    load:
      pipeline.mode === "full"
        ? { kind: "replace", loadId: pipeline.id, inKeyOrder: transforms.length === 0 }
        : { kind: "upsert" },
    guard: limits.deletions,
    options: pipeline.target_options,
    claim: { pipelineId: pipeline.id, runId, epoch, batchNo: checkpoint.batchNo, followsUp: trigger === "follow_up" },
    isMetaStore: (mark) => store.seesMark(mark),
    lost: endSignal,
    cancelled: cancelSignal,
    requireLease: commit.fence,
  });
}

function chooseCheckpointer({ kept, together }: SinkWriter, commit: BatchCommit): Checkpointer {
  if (together) return sharedCheckpointer(commit);
  return kept === undefined ? followingCheckpointer(commit) : besideCheckpointer(kept, commit);
}

function dataPathOf(
  { targets }: Pick<ExecutorParts, "targets">,
  source: Source,
  writer: SinkWriter,
  { transforms, target }: TaskPlan,
  request: ReadRequest,
  { batch_size }: Pipeline,
): Promise<ChosenDataPath> {
  return chooseDataPath({
    hasTransforms: transforms.length > 0,
    takesBytes: targets.can(target).takesBytes,
    canPull: writer.pull !== undefined,
    isSameDatabase: async () => writer.databaseMark !== undefined && source.seesMark(writer.databaseMark),
    canSeek: () => source.canSeek(request, batch_size),
  });
}
