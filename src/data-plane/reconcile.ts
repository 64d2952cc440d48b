import { setTimeout as delay } from "node:timers/promises";
import type { ComparisonResult } from "../connectors/sink.ts";
import type { ReadRequest } from "../connectors/source.ts";
import { configFingerprint } from "../domain/checkpoint.ts";
import { ERROR_CATALOGUE, VitrinaError } from "../domain/error-catalogue.ts";
import type { Pipeline } from "../domain/pipeline.ts";
import { readOrder, watermarkPosition } from "../domain/reading-plan.ts";
import {
  type Circumstances,
  explain,
  hasDifferences,
  isExplainedByRun,
  judge,
  LISTED_KEYS,
  type Unfollowed,
} from "../domain/reconcile.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { Run } from "../domain/run.ts";
import { parseTaskPlan } from "../domain/task-plan.ts";
import type { ReconcileFindings } from "../meta-store/ports/reconciles.ts";
import type { PipelineState } from "../meta-store/ports/state.ts";
import { faultPoint } from "../observability/fault-points.ts";
import { openChain } from "../tasks/open-chain.ts";
import { addRows, type RowStanding } from "./compare-rows.ts";
import type { ExecutionEnd } from "./executor.ts";
import { closeAll, withPlainTypes } from "./load.ts";
import { openSource } from "./open-source.ts";
import type { EngineParts, RunContext } from "./run-context.ts";

interface ReconcileControl {
  /** Aborts when nobody waits for the result: everything that is open is closed. */
  readonly signal: AbortSignal;
  /** Called after each batch. */
  onProgress(rowsCompared: number): Promise<void>;
}

/** If a full load intervenes, both sides are read again after it has ended. */
const MOST_COMPARISONS = 2;
const LONGEST_WAIT_FOR_RUN_MS = 60_000;
const LOOK_AT_RUN_EVERY_MS = 500;

/** Compares, and records the findings. A runner that stops hands the whole run back: another one starts it again. */
export async function executeReconcile({ parts, claim, pipeline, control, report }: RunContext): Promise<ExecutionEnd> {
  const { reconciles } = parts.store;
  try {
    const findings = await reconcile(parts, pipeline, {
      signal: AbortSignal.any([control.endSignal, control.stopSignal]),
      onProgress: (rowsCompared) => reconciles.noteCompared(claim, rowsCompared),
    });
    await reconciles.keepFindings(claim, findings);
    report.log.info(
      { verdict: findings.verdict, rows_compared: findings.report.source.rows_read },
      "source and target compared",
    );
  } catch (error) {
    const end = control.stopRequest();
    if (end === undefined) throw error;
    return end;
  }
  await faultPoint("before_finish");
  return "finished";
}

/** Reads the source as a load would, and compares it with the target. Changes neither. */
async function reconcile(
  parts: EngineParts,
  pipeline: Pipeline,
  control: ReconcileControl,
): Promise<ReconcileFindings> {
  for (let passes = 1; ; passes += 1) {
    const { found, rowsRead, columns, circumstances } = await comparePass(parts, pipeline, control);
    const tryAgain = hasDifferences(found) && isExplainedByRun(circumstances) && passes < MOST_COMPARISONS;
    if (tryAgain) {
      await untilRunEnds(parts, pipeline, control.signal);
      continue;
    }
    const { source, ...rest } = found;
    return {
      verdict: judge(found, circumstances),
      report: {
        source: { rows_read: rowsRead, ...source },
        ...rest,
        compared_columns: [...columns],
        passes,
        notes: explain(found, circumstances),
      },
    };
  }
}

interface Pass {
  readonly found: ComparisonResult;
  readonly rowsRead: number;
  readonly columns: readonly string[];
  readonly circumstances: Circumstances;
}

async function comparePass(parts: EngineParts, pipeline: Pipeline, control: ReconcileControl): Promise<Pass> {
  const before = await latestRun(parts, pipeline);
  // In this order: checkpoint, target, source. Decision 0017 says why.
  const state = await parts.store.state.get(pipeline.id);
  const pass = await compareAll(parts, pipeline, state, control, false).catch((error: unknown) => {
    if (!(error instanceof VitrinaError) || error.retry !== "row" || control.signal.aborted) throw error;
    return compareAll(parts, pipeline, state, control, true);
  });
  const after = await latestRun(parts, pipeline);
  return {
    ...pass,
    circumstances: {
      mode: pipeline.mode,
      runWasActive: before?.status === "RUNNING" || before?.id !== after?.id,
      unfollowed: await unfollowedOf(parts, pipeline, after),
      watermarkIsForeign: isForeign(pipeline, state),
    },
  };
}

async function compareAll(
  parts: EngineParts,
  pipeline: Pipeline,
  state: PipelineState,
  { signal, onProgress }: ReconcileControl,
  setRefusedAside: boolean,
): Promise<Omit<Pass, "circumstances">> {
  const opened: { close(): Promise<void> }[] = [];
  const closeNow = (): void => void closeAll(opened);
  signal.addEventListener("abort", closeNow);
  try {
    signal.throwIfAborted();
    const plan = parseTaskPlan(pipeline, parts.targets);
    const { source, columns } = await openSource(parts.connectors, pipeline, plan);
    opened.push(source);
    const transform = await openChain(parts.tasks, plan.transforms, columns);
    opened.push(transform);
    const sink = await parts.connectors.sink(plan.target);
    const comparison = await sink.openComparison({
      target: plan.target,
      columns: withPlainTypes(transform.columns, columns),
      key: pipeline.target_key,
      incrementalKey: pipeline.incremental_key,
      options: pipeline.target_options,
      setRefusedAside,
    });
    opened.push(comparison);
    const reader = {
      source,
      transform: plan.transforms.length === 0 ? undefined : transform,
      comparison,
      batchSize: pipeline.batch_size,
      signal,
    };
    let rowsRead = 0;
    const order = await readOrder({
      config: pipeline,
      columns,
      key: comparison.key,
      hasTransforms: plan.transforms.length > 0,
      isUnique: (names) => source.isUnique(plan.readerQuery, names),
    });
    const read = { query: plan.readerQuery, columns, ...order };
    for (const { request, standing } of readsOf(pipeline, state, read)) {
      await addRows(reader, request, standing, (rows) => {
        rowsRead += rows;
        return onProgress(rowsRead);
      });
    }
    await faultPoint("reconcile_read");
    signal.throwIfAborted();
    const found = await comparison.finish(LISTED_KEYS);
    return { found, rowsRead, columns: comparison.columns };
  } finally {
    signal.removeEventListener("abort", closeNow);
    await closeAll(opened);
  }
}

interface Read {
  readonly request: ReadRequest;
  readonly standing: RowStanding;
}

/**
 * An incremental source is read in two parts: up to the watermark, where source and target must agree, and after it,
 * where the next run reads. A row that moves from the first part to the second meanwhile is read twice, and the second
 * time counts.
 */
function readsOf(pipeline: Pipeline, state: PipelineState, whole: Omit<ReadRequest, "after">): Read[] {
  if (pipeline.mode !== "incremental" || isForeign(pipeline, state)) {
    return [{ request: { ...whole, after: null }, standing: "settled" }];
  }
  const watermark = watermarkPosition(pipeline, state.watermark);
  const reads: Read[] = [];
  if (watermark !== null) reads.push({ request: { ...whole, after: null, until: watermark }, standing: "settled" });
  if (pipeline.null_cursor === "each_run") {
    reads.push({ request: { ...whole, after: null, nulls: "only" }, standing: "pending" });
  }
  return [...reads, { request: { ...whole, after: watermark }, standing: "pending" }];
}

function isForeign(pipeline: Pipeline, { watermarkFingerprint }: PipelineState): boolean {
  if (pipeline.mode !== "incremental" || watermarkFingerprint === null) return false;
  return watermarkFingerprint !== configFingerprint(pipeline);
}

/** A mart that follows is equal to its query up to its position; what has changed since comes with the next round, if any. */
async function unfollowedOf(
  { connectors, store }: EngineParts,
  pipeline: Pipeline,
  last: Run | undefined,
): Promise<Unfollowed> {
  if (pipeline.mode !== "follow") return "nothing";
  const { position, tables } = await store.follow.get(pipeline.id);
  if (position === null) return "nothing";
  const source = await connectors.source(pipeline);
  const watch = await source.watchChanges?.();
  const hasNews = async (ifRecorded: boolean): Promise<boolean> =>
    (await watch?.changedSince([{ pipelineId: pipeline.id, position, tables, ifRecorded }]))?.length === 1;
  try {
    if (!(await hasNews(false))) return "nothing";
    const found = (await store.follow.watched()).find(({ id }) => id === pipeline.id);
    if (found?.mayStart === true && (await hasNews(found.ifRecorded))) return "soon";
  } finally {
    await closeAll([source, ...(watch === undefined ? [] : [watch])]);
  }
  const { enabled, status } = pipeline;
  if (!enabled) return { because: "disabled" };
  if (status === "PAUSED") return { because: status };
  // A failure that may pass is followed by another try, a while later.
  return status === "FAILED" && !mayPassByItself(last?.error_code) ? { because: status } : "soon";
}

function mayPassByItself(code: string | null | undefined): boolean {
  const known = Object.entries(ERROR_CATALOGUE).find(([name]) => name === code);
  return known !== undefined && mayPass(known[1].retry);
}

async function latestRun({ store }: EngineParts, { id }: Pipeline) {
  return (await store.runs.list(id, { limit: 1 }, { lane: "write" })).items[0];
}

async function untilRunEnds(parts: EngineParts, pipeline: Pipeline, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + LONGEST_WAIT_FOR_RUN_MS;
  while (performance.now() < deadline && (await latestRun(parts, pipeline))?.status === "RUNNING") {
    await delay(LOOK_AT_RUN_EVERY_MS, undefined, { signal });
  }
}
