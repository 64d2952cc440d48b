/**
 * How a pipeline reads. Decided in one place, for the run and for `validate`, which says in advance what a run will do.
 */
import { type Checkpoint, resumePosition, type ScanPosition } from "./checkpoint.ts";
import { VitrinaError } from "./error-catalogue.ts";
import type { PipelineConfig } from "./pipeline.ts";
import type { Column } from "./row.ts";
import { numbersBefore, type Watermark } from "./watermark.ts";

/**
 * - `push-down`: inside one database; rows never reach this process.
 * - `stream`: from one database to another as bytes that nobody looks at.
 * - `rows`: through code tasks, or into a sink that wants values.
 */
export type DataPath = "push-down" | "stream" | "rows";

interface ReadOrder {
  /** Empty: in any order; such a read cannot be continued. */
  readonly orderBy: readonly string[];
  /** True: rows at the position are read again. Needed where a position may stand for several rows of the target. */
  readonly inclusive: boolean;
  /** Rows without a value in the first ordering column: read last, or left out. */
  readonly nulls: "last" | "excluded";
}

interface ReadFacts {
  readonly config: Pick<PipelineConfig, "mode" | "incremental_key" | "incremental_id_key">;
  /** Of the query. */
  readonly columns: readonly Column[];
  /** Of the target. */
  readonly key: readonly string[];
  readonly hasTransforms: boolean;
  /** True when no two rows of the query can have the same values in these columns. */
  isUnique(columns: readonly string[]): Promise<boolean>;
}

/**
 * A full load reads in the order of the target's key; an incremental one in the order of its cursor, and then of the
 * key. So rows at the same position are one row of the target, even if cursor values repeat, and a load may continue
 * after it. Only code tasks can make several rows of them: then the position is read again, unless it is unique.
 */
export async function readOrder({ config, columns, key, hasTransforms, isUnique }: ReadFacts): Promise<ReadOrder> {
  // A transform may make the key; then a full load has no order to continue in, and starts over when interrupted.
  const isReadable = key.every((name) => columns.some((column) => column.name === name));
  const ofKey = isReadable ? key : [];
  const isFull = config.mode !== "incremental";
  const orderBy = isFull ? ofKey : [...new Set([...cursorOf(config), ...ofKey])];
  const isExact = isReadable && !hasTransforms;
  const inclusive = !isExact && orderBy.length > 0 && !(await isUnique(orderBy));
  return { orderBy, inclusive, nulls: isFull ? "last" : "excluded" };
}

/** What an incremental load follows: the columns of its watermark. */
export function cursorOf({ incremental_key, incremental_id_key }: ReadFacts["config"]): string[] {
  return [...new Set([incremental_key, incremental_id_key])].filter((name) => name !== null);
}

/** Of two rows with the same key, a full load would keep an arbitrary one; but a code task may still merge them. */
export function wantsEachKeyOnce({ mode }: PipelineConfig, hasTransforms: boolean): boolean {
  return mode !== "incremental" && !hasTransforms;
}

export function repeatedKey(key: readonly string[]): VitrinaError {
  const names = key.map((name) => `"${name}"`).join(", ");
  return new VitrinaError("KEY_NOT_UNIQUE_IN_SOURCE", `The query returns several rows with the same ${names}.`);
}

interface KnownState extends Checkpoint {
  readonly watermark: Watermark;
  readonly watermarkFingerprint: string | null;
}

/** `isResumable`: the unfinished full load that the position belongs to is still there. */
export function startPosition(
  config: PipelineConfig,
  state: KnownState,
  fingerprint: string,
  isResumable: boolean,
): ScanPosition | null {
  const unfinished = resumePosition(state, fingerprint);
  if (config.mode !== "incremental") return isResumable ? unfinished : null;
  return unfinished ?? watermarkPosition(config, state.watermark);
}

/** Where a new incremental load starts. */
export function watermarkPosition(
  { lookback_numbers }: Pick<PipelineConfig, "lookback_numbers">,
  { value, id }: Watermark,
): ScanPosition | null {
  if (value === null) return null;
  if (lookback_numbers > 0) return [numbersBefore(value, lookback_numbers)];
  return id === null ? [value] : [value, id];
}

/** The watermark of another query or key would make an incremental load miss rows. */
export function requireStateOf({ mode, name }: PipelineConfig, state: KnownState, fingerprint: string): void {
  if (mode !== "incremental" || state.watermarkFingerprint === null) return;
  if (state.watermarkFingerprint === fingerprint) return;
  throw new VitrinaError(
    "STATE_OF_OTHER_CONFIG",
    `The checkpoint of ${name} was made by a different query, key or target than the current one.`,
  );
}

interface DataPathFacts {
  readonly hasTransforms: boolean;
  readonly takesBytes: boolean;
  /** The writer's sessions can become the reader. */
  readonly canPull: boolean;
  isSameDatabase(): Promise<boolean>;
  canSeek(): Promise<boolean>;
}

export interface ChosenDataPath {
  readonly dataPath: DataPath;
  /** For people. */
  readonly reason: string;
}

export async function chooseDataPath(facts: DataPathFacts): Promise<ChosenDataPath> {
  const { hasTransforms, takesBytes, canPull } = facts;
  if (hasTransforms) return { dataPath: "rows", reason: "Code tasks need to see every row." };
  if (!takesBytes) return { dataPath: "rows", reason: "The target takes values, not bytes of a table." };
  if (!canPull) return stream("No role may both read the sources and write the targets (LOADER_DATABASE_URL).");
  if (!(await facts.isSameDatabase())) return stream("Source and target are not known to be one database.");
  if (await facts.canSeek()) {
    const reason = "Source and target are one database, and the query can be entered at any position.";
    return { dataPath: "push-down", reason };
  }
  return stream("The query must do most of its work before its first row, or returns rows without a key.");
}

function stream(reason: string): ChosenDataPath {
  return { dataPath: "stream", reason };
}
