import type { SinkWriter } from "../connectors/sink.ts";
import type { ReadRequest } from "../connectors/source.ts";
import { configFingerprint, resumePosition, type ScanPosition } from "../domain/checkpoint.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import {
  type ChosenDataPath,
  chooseDataPath,
  readOrder,
  requireStateOf,
  startPosition,
  wantsEachKeyOnce,
  watermarkPosition,
} from "../domain/reading-plan.ts";
import type { Column } from "../domain/row.ts";
import { parseTaskPlan, type TaskPlan } from "../domain/task-plan.ts";
import { type Horizon, isTimeType } from "../domain/watermark.ts";
import type { PipelineState } from "../meta-store/ports/state.ts";
import { databaseError } from "../postgres/errors.ts";
import { openChain } from "../tasks/open-chain.ts";
import { type OpenedSource, openSource } from "./open-source.ts";
import type { IncrementalLoad, Load, LoadScope, OpenRun, ReadingRun, RunContext } from "./run-context.ts";
import { requireSourceOf } from "./source-change.ts";
import { requireTargetOf } from "./target-loss.ts";

/** Opens what every load of the run shares. */
export async function openReading(run: RunContext): Promise<ReadingRun & { close(): Promise<void> }> {
  const { parts, pipeline, control } = run;
  const plan = parseTaskPlan(pipeline, parts.targets);
  const opened = await openSource(parts.connectors, pipeline, plan, control.cancelSignal);
  try {
    const reading = await openReadingFrom(run, plan, opened);
    return { ...reading, close: () => closeAll([opened.source, reading]) };
  } catch (error) {
    await closeAll([opened.source]);
    throw error;
  }
}

/** The same from a source that is open, and stays open. */
export async function openReadingFrom(
  run: RunContext,
  plan: TaskPlan,
  { source, columns }: OpenedSource,
): Promise<ReadingRun & { close(): Promise<void> }> {
  const transform = await openChain(run.parts.tasks, plan.transforms, columns);
  return { ...run, plan, source, columns, transform, close: () => closeAll([transform]) };
}

/** Opens the target. `mayContinue`: an unfinished load of the same scope is continued. */
export async function openLoad(run: ReadingRun, scope: LoadScope, mayContinue = true): Promise<Load> {
  const { plan, columns, transform } = run;
  const writer = await openWriter(run, plan, scope, withPlainTypes(transform.columns, columns));
  try {
    const open = { ...run, scope, fingerprint: configFingerprint(configOf(run.pipeline, scope)), writer };
    const planned = scope === "keys" ? await planKeys(open) : await planLoad(open, mayContinue);
    return { ...planned, close: () => closeAll([writer]) };
  } catch (error) {
    await closeAll([writer]);
    throw error;
  }
}

/** An incremental pipeline that reads everything does so as a full one: neither continues what the other left. */
function configOf(pipeline: Pipeline, scope: LoadScope): Pipeline {
  return scope === "everything" && pipeline.mode === "incremental" ? { ...pipeline, mode: "full" } : pipeline;
}

/** Once everything is open: decides how much of the checkpoint is used, where the load starts, and how rows travel. */
async function planLoad(run: OpenRun, mayContinue: boolean): Promise<Omit<Load, "close">> {
  const { scope, plan, fingerprint, source, columns, writer } = run;
  const pipeline = configOf(run.pipeline, scope);
  const known = await currentState(run);
  requireStateOf(pipeline, known, fingerprint);
  const { state, startsOver } = await requireSourceOf(run, await requireTargetOf(run, known));
  const incremental = await openIncremental(run, state);
  const hasTransforms = plan.transforms.length > 0;
  const order = await readOrder({
    config: pipeline,
    columns,
    key: writer.key,
    hasTransforms,
    isUnique: (names) => source.isUnique(plan.readerQuery, names),
  });
  const read = { query: plan.readerQuery, columns, ...order, eachOnce: wantsEachKeyOnce(pipeline, hasTransforms) };
  const after = startPosition(pipeline, state, fingerprint, writer.resumed && mayContinue);
  const resumed = after !== null && after === resumePosition(state, fingerprint);
  const { dataPath, reason } = await dataPathOf(run, { ...read, after });
  return {
    ...run,
    dataPath,
    dataPathReason: reason,
    estimatedRows: await source.estimateRows({ ...read, after }),
    read,
    startsAnew: scope === "after_cursor" || after === null,
    resumed,
    notes: [...notesOf(pipeline, resumed, startsOver), ...(incremental?.notes ?? []), ...(writer.notes ?? [])],
    incremental,
    progress: progressFrom(pipeline, state, after),
  };
}

/** For rows that are read by their keys, from no position. */
async function planKeys(run: OpenRun): Promise<Omit<Load, "close">> {
  const { parts, pipeline, plan, columns, writer } = run;
  const eachOnce = wantsEachKeyOnce(pipeline, plan.transforms.length > 0);
  const takesBytes = plan.transforms.length === 0 && parts.targets.can(plan.target).takesBytes;
  return {
    ...run,
    dataPath: takesBytes ? "stream" : "rows",
    dataPathReason: "The rows of single keys are read.",
    estimatedRows: null,
    read: { query: plan.readerQuery, columns, orderBy: writer.key, inclusive: false, nulls: "last", eachOnce },
    startsAnew: true,
    resumed: false,
    notes: writer.notes ?? [],
    incremental: undefined,
    progress: progressFrom(pipeline, await currentState(run), null),
  };
}

function progressFrom(
  { batch_size: batchSize, max_rejects: maxRejects, max_delete_percent: maxDeletePercent }: Pipeline,
  { batchNo, targetMark }: PipelineState,
  position: ScanPosition | null,
): Load["progress"] {
  const limits = { batchSize, maxRejects, maxDeletePercent };
  return { position, batchNo, rejected: 0, rejectedInRound: undefined, limits, targetMark };
}

/** The rest of a continued full load is read as the source is now, not as it was when the load began. */
export function isInParts({ resumed, scope }: Pick<Load, "resumed" | "scope">): boolean {
  return resumed && scope === "everything";
}

function notesOf({ mode }: Pipeline, resumed: boolean, startsOver: string | undefined): string[] {
  if (startsOver !== undefined) return [startsOver];
  if (!resumed || mode !== "full") return [];
  return ["The load was interrupted, so its rows are from several moments. A further run follows by itself."];
}

export async function closeAll(opened: readonly { close(): Promise<void> }[]): Promise<void> {
  await Promise.allSettled(opened.map((part) => part.close()));
}

/** A target in another database may be one batch ahead of the meta-store: the checkpoint beside the data decides. */
async function currentState({ parts, pipeline, writer, commit }: OpenRun): Promise<PipelineState> {
  const { kept } = writer.commits;
  const state = await parts.store.state.get(pipeline.id);
  if (kept === undefined || kept.found.batchNo <= state.batchNo) return state;
  await commit.catchUp(kept.found);
  return parts.store.state.get(pipeline.id);
}

async function openIncremental(run: OpenRun, state: PipelineState): Promise<IncrementalLoad | undefined> {
  const { source, plan, columns, pipeline, fingerprint, report } = run;
  const { incremental_key: key, incremental_id_key: idKey, null_cursor, lookback_numbers } = pipeline;
  if (run.scope !== "after_cursor" || key === null) return undefined;
  const cursor = { key, idKey, nulls: null_cursor, lookbackNumbers: lookback_numbers, start: state.watermark };
  const nulls = await source.requireUsableCursor(plan.readerQuery, columns, cursor);
  const keyType = columns.find((column) => column.name === key)?.type ?? "text";
  await tellUnseen(run, key);
  // Later transactions may reuse a number that is not unique: then all rows with the last number are read again.
  const keepsId = isTimeType(keyType) || (await source.isUnique(plan.readerQuery, [key]));
  const { watermark: previous, candidate } = state;
  const start = { keyType, keepsId, mayMeetNulls: nulls === "unknown", previous, candidate };
  const resumed = resumePosition(state, fingerprint) !== null && state.safePoint !== null;
  if (resumed) return { ...start, safePoint: state.safePoint as string, ceiling: null, notes: [] };
  const horizon = await takeHorizon(run, state);
  if (horizon.method === "look-back")
    report.log.warn({ reason: horizon.reason }, "late commits are covered by a look-back only");
  const notes = horizon.behindAll ? [behindAll(key)] : [];
  return { ...start, safePoint: horizon.safe, ceiling: horizon.ceiling, notes };
}

/** It cannot be known here whether rows were deleted, or will return with lower numbers. */
function behindAll(key: string): string {
  return `The source has no row at or after the position of this load. If it was restored or its sequence was set back, values of "${key}" may be reused, and such rows are not read: reset the state.`;
}

/** Logged once per run, for anyone wondering why the mart does not follow. A run does not fail for lack of it. */
async function tellUnseen({ source, plan, report }: OpenRun, key: string): Promise<void> {
  const tables = await source.unseenTables(plan.readerQuery, key).catch((error: unknown) => {
    const reason = databaseError(error, "look at the query").message;
    report.log.warn({ reason }, "could not determine which tables' changes this load misses");
    return [];
  });
  if (tables.length > 0)
    report.log.warn({ tables, incremental_key: key }, "this load does not see changes to these tables");
}

/** A timestamp is compared with the horizon itself. For any other key the greatest settled value is needed. */
function takeHorizon({ source, plan, columns, pipeline }: OpenRun, { watermark }: PipelineState): Promise<Horizon> {
  const column = columns.find(({ name }) => name === pipeline.incremental_key);
  const isStamp = column === undefined || isTimeType(column.type);
  const after = watermarkPosition(pipeline, watermark);
  const key = isStamp ? undefined : { query: plan.readerQuery, column, after };
  return source.takeHorizon(pipeline.lookback_seconds * 1000, key);
}

/** A code task passes on only the names of types. */
export function withPlainTypes(columns: readonly Column[], ofQuery: readonly Column[]): readonly Column[] {
  return columns.map((column) => {
    const plainType = ofQuery.find(({ type }) => type === column.type)?.plainType;
    return plainType === undefined ? column : { ...column, plainType };
  });
}

async function openWriter(
  { parts, claim, pipeline, commit, control }: RunContext,
  { target, transforms }: TaskPlan,
  scope: LoadScope,
  columns: readonly Column[],
): Promise<SinkWriter> {
  const { runId, epoch, decidedEpoch, checkpoint } = claim;
  const sink = await parts.connectors.sink(target);
  return sink.open({
    target,
    columns,
    key: pipeline.target_key,
    createTarget: pipeline.create_target,
    addColumns: pipeline.add_columns,
    load:
      scope === "everything"
        ? {
            kind: "replace",
            loadId: pipeline.id,
            inKeyOrder: transforms.length === 0,
            deletes: pipeline.mode === "follow",
          }
        : { kind: "upsert", deletes: scope === "keys" },
    options: pipeline.target_options,
    claim: {
      pipelineId: pipeline.id,
      runId,
      epoch,
      decidedEpoch,
      batchNo: checkpoint.batchNo,
    },
    isMetaStore: (mark) => parts.store.seesMark(mark),
    lost: control.endSignal,
    cancelled: control.cancelSignal,
    requireLease: commit.fence,
  });
}

function dataPathOf({ parts, source, writer, plan, pipeline }: OpenRun, request: ReadRequest): Promise<ChosenDataPath> {
  return chooseDataPath({
    hasTransforms: plan.transforms.length > 0,
    takesBytes: parts.targets.can(plan.target).takesBytes,
    canPull: writer.pull !== undefined,
    isSameDatabase: async () => writer.databaseMark !== undefined && source.seesMark(writer.databaseMark),
    canSeek: () => source.canSeek(request, pipeline.batch_size),
  });
}
