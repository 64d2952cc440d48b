import type { IndexAdvice, InspectedTarget, ReadRequest, SourceInspector } from "../../connectors/inspector.ts";
import { configFingerprint, type ScanPosition } from "../../domain/checkpoint.ts";
import { plural } from "../../domain/counted.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineConfig } from "../../domain/pipeline.ts";
import {
  type ChosenDataPath,
  chooseDataPath,
  cursorOf,
  readOrder,
  repeatedKey,
  requireStateOf,
  startPosition,
  wantsEachKeyOnce,
} from "../../domain/reading-plan.ts";
import type { CursorRules } from "../../domain/watermark.ts";
import type { Validation } from "./operations.ts";
import type { CheckedQuery, Validator } from "./validator.ts";

export interface CheckedReading {
  readonly reading: Validation["reading"];
  readonly estimatedRows: number | null;
}

/** How a run would read, and what stands in its way. */
export async function checkReading(
  validator: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  target: InspectedTarget | undefined,
): Promise<CheckedReading> {
  const { config, plan, parts } = validator;
  const key = target?.key ?? config.target_key;
  await checkKey(validator, source, query, key);
  await checkMissingKeys(validator, source, query, key);
  if (target !== undefined) await checkRefusals(validator, source, query, target);
  const isCursorUsable = await checkCursor(validator, source, query);
  if (isCursorUsable) await checkCursorTies(validator, source, query, key);
  const order = await orderOf(validator, source, query, key);
  const isInspectable = plan.target !== undefined && (await parts.inspector.target(plan.target)) !== undefined;
  const isOpen = target === undefined && isInspectable;
  if (!isCursorUsable || isOpen || order.orderBy.some((name) => !hasColumn(query, name))) {
    return { reading: null, estimatedRows: null };
  }
  const after = await checkState(validator, source, query, target?.isResumable ?? false);
  const request: ReadRequest = { query: query.text, columns: query.columns, ...order, after };
  const place = { pointer: plan.reader?.pointer ?? "" };
  const estimated = await validator.findings.attempt({ ...place, question: "how many rows there are to read" }, () =>
    source.estimateRows(request),
  );
  const estimatedRows = estimated ?? null;
  // Without a key in the query only code tasks can make one; otherwise that problem comes first.
  if (order.orderBy.length === 0 && plan.transforms.length === 0) return { reading: null, estimatedRows };
  const canSeek = once(() => source.canSeek(request, config.batch_size));
  const chosen = await validator.findings.attempt({ ...place, question: "how the rows will be read" }, () =>
    dataPathOf(validator, source, canSeek),
  );
  const advice = chosen === undefined ? null : await checkIndex(validator, source, request, canSeek);
  return {
    reading: {
      strategy: chosen === undefined ? null : chosen.dataPath === "push-down" ? "keyset" : "single_scan",
      explanation: chosen?.reason ?? "It could not be found out in time.",
      data_path: chosen?.dataPath ?? null,
      order_by: [...order.orderBy],
      index_advice: advice,
    },
    estimatedRows,
  };
}

function hasColumn({ columns }: CheckedQuery, name: string): boolean {
  return columns.some((column) => column.name === name);
}

/** Two rows with the same key: a full load keeps either of them by chance, an incremental one keeps the later. */
async function checkKey(
  { config, plan, findings }: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  key: readonly string[],
): Promise<void> {
  if (key.length === 0 || key.some((name) => !hasColumn(query, name))) return;
  const check = { pointer: "/target_key", question: "whether the key is unique in the source" };
  const isRepeated = await findings.attempt(check, () => source.repeatsKey(query.text, key));
  if (isRepeated !== true) return;
  const isRefused = wantsEachKeyOnce(config, plan.transforms.length > 0);
  findings.add(repeatedKey(key), check.pointer, isRefused ? "error" : "warning");
}

/** Rows without a key are rejected, each of them; a code task may still give them one. */
async function checkMissingKeys(
  { config, plan, findings }: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  key: readonly string[],
): Promise<void> {
  if (key.length === 0 || key.some((name) => !hasColumn(query, name))) return;
  const { max_rejects: most, mode } = config;
  const check = { pointer: "/target_key", question: "whether rows lack a key" };
  const missing = await findings.attempt(check, () => source.rowsWithoutKey(query.text, key, most + 1));
  if (missing === undefined || missing === 0) return;
  const isRefused = missing > most && mode !== "incremental" && plan.transforms.length === 0;
  const names = key.map((name) => `"${name}"`).join(", ");
  const message = `The query returns ${inWords(missing, most)} without a value for ${names}.`;
  const problem = new VitrinaError("KEY_NULL_IN_SOURCE", message);
  findings.add(problem, check.pointer, isRefused ? "error" : "warning");
}

/** As the run orders its rows. What could not be proven in time is not proven. */
async function orderOf(
  { config, plan, findings }: Validator,
  source: SourceInspector,
  { text, columns }: CheckedQuery,
  key: readonly string[],
): ReturnType<typeof readOrder> {
  const check = { pointer: "/incremental_id_key", question: "whether a position names a single row" };
  return readOrder({
    config,
    columns,
    key,
    hasTransforms: plan.transforms.length > 0,
    isUnique: async (names) => (await findings.attempt(check, () => source.isUnique(text, names))) ?? false,
  });
}

/** Rows that the cursor does not tell apart are told apart by the key, so none is lost; but it costs something. */
async function checkCursorTies(
  { config, findings }: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  key: readonly string[],
): Promise<void> {
  const cursor = cursorOf(config);
  if (config.incremental_id_key === null || (key.length > 0 && key.every((name) => cursor.includes(name)))) return;
  const check = { pointer: "/incremental_id_key", question: "whether the cursor tells rows apart" };
  if ((await findings.attempt(check, () => source.repeatsKey(query.text, cursor))) !== true) return;
  const names = cursor.map((name) => `"${name}"`).join(" and ");
  findings.add(
    new VitrinaError("CURSOR_NOT_UNIQUE", `The query returns several rows with the same ${names}.`),
    check.pointer,
    "warning",
  );
}

function cursorRules(config: PipelineConfig, key: string): CursorRules {
  const { incremental_id_key: idKey, null_cursor: nulls, lookback_numbers: lookbackNumbers } = config;
  return { key, idKey, nulls, lookbackNumbers };
}

/** Counted no further than one beyond the limit. */
function inWords(rows: number, limit: number): string {
  if (rows > limit) return `more than ${plural(limit, "row")}`;
  return plural(rows, "row");
}

/** Rows with values that the target's types cannot take: the run rejects them, and fails when they are too many. */
async function checkRefusals(
  { config: { max_rejects: most, mode }, plan, findings }: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  { refusals }: InspectedTarget,
): Promise<void> {
  if (refusals.length === 0) return;
  const check = { pointer: plan.targetPointer, question: "whether the target takes every value" };
  const found = await findings.attempt(check, () => source.rowsRefused(query.text, refusals, most + 1));
  if (found === undefined || found === 0) return;
  const isTooMany = found > most && mode !== "incremental";
  const reasons = refusals.map(({ reason }) => reason).join("; or ");
  const message = `The target would refuse ${inWords(found, most)}, in which ${reasons}.`;
  const problem = new VitrinaError(isTooMany ? "TOO_MANY_REJECTS" : "ROW_REFUSED", message);
  findings.add(problem, check.pointer, isTooMany ? "error" : "warning");
}

/** True when rows can be read in the order of the cursor, or when there is none. */
async function checkCursor(
  { config, findings }: Validator,
  source: SourceInspector,
  { text, columns }: CheckedQuery,
): Promise<boolean> {
  if (config.mode !== "incremental") return true;
  if (config.incremental_key === null) return false;
  const rules = cursorRules(config, config.incremental_key);
  const pointer = "/incremental_key";
  const ofColumns = source.cursorColumnProblems(columns, rules);
  for (const problem of ofColumns) findings.add(problem, pointer);
  if (ofColumns.length > 0) return false;
  const ahead = { pointer, question: "whether numbers are given out ahead" };
  const ofNumbers = await findings.attempt(ahead, () => source.numbersAheadProblems(text, rules));
  for (const problem of ofNumbers ?? []) findings.add(problem, pointer);
  const check = { pointer, question: "whether rows lack an incremental key" };
  const ofRows = await findings.attempt(check, () => source.cursorRowProblems(text, rules));
  for (const problem of ofRows ?? []) findings.add(problem, pointer);
  return true;
}

/** Where the next run starts. The state of another query must be reset or kept before, which a trial only announces. */
async function checkState(
  { config, stored, isTrial, findings }: Validator,
  source: SourceInspector,
  { columns }: CheckedQuery,
  isResumable: boolean,
): Promise<ScanPosition | null> {
  if (stored === undefined) return null;
  const { state } = stored;
  const fingerprint = configFingerprint(config);
  try {
    requireStateOf(config, state, fingerprint);
  } catch (error) {
    if (!(error instanceof VitrinaError)) throw error;
    findings.add(error, "", isTrial ? "warning" : "error");
    return null;
  }
  const { mode, incremental_key: key } = config;
  const start = await findings.attempt({ pointer: "", question: "whether the position fits" }, async () => {
    const rules = { ...cursorRules(config, key ?? ""), start: state.watermark };
    if (mode === "incremental") await source.requireFittingStart(columns, rules);
    return { position: startPosition(config, state, fingerprint, isResumable) };
  });
  return start?.position ?? null;
}

async function dataPathOf(
  { parts: { inspector, targets }, plan: { target, transforms } }: Validator,
  source: SourceInspector,
  canSeek: () => Promise<boolean>,
): Promise<ChosenDataPath | undefined> {
  if (target === undefined) return undefined;
  const sink = await inspector.target(target);
  return chooseDataPath({
    hasTransforms: transforms.length > 0,
    takesBytes: targets.can(target).takesBytes,
    canPull: sink?.canPull ?? false,
    isSameDatabase: async () => (await sink?.isSeenBy((mark) => source.seesMark(mark))) ?? false,
    canSeek,
  });
}

/** Advice for people; for a cursor, which is followed in every run, also a warning. */
async function checkIndex(
  { config, findings, plan }: Validator,
  source: SourceInspector,
  { query, orderBy }: ReadRequest,
  canSeek: () => Promise<boolean>,
): Promise<string | null> {
  const check = { pointer: plan.reader?.pointer ?? "", question: "whether an index would help" };
  // The key behind a cursor only tells ties apart: few enough to be sorted.
  const wanted = config.mode === "incremental" ? cursorOf(config) : orderBy;
  const advice = await findings.attempt(check, async (): Promise<IndexAdvice> => {
    if (orderBy.length === 0) return { kind: "indexed" };
    const found = await source.adviseIndex(query, wanted);
    return found.kind === "unknown" && (await canSeek()) ? { kind: "indexed" } : found;
  });
  if (advice === undefined || advice.kind === "indexed") return null;
  const text = advice.kind === "missing" ? advice.statement : advice.reason;
  if (config.mode === "incremental") {
    const names = wanted.map((name) => `"${name}"`).join(", ");
    const problem = new VitrinaError("CURSOR_UNINDEXED", `No index of the source leads to a position in ${names}.`, {
      hint: advice.kind === "missing" ? `Let its owner run: ${text}.` : `${text} Every run reads the whole query.`,
    });
    findings.add(problem, "/incremental_key", "warning");
  }
  return text;
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= work();
    return answer;
  };
}
