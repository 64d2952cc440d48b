/**
 * How a pipeline reads. Decided here once: for the run, and for `validate`, which tells beforehand what a run will do.
 */
import { type Checkpoint, resumePosition, type ScanPosition } from "./checkpoint.ts";
import { VitrinaError } from "./error-catalogue.ts";
import type { PipelineConfig } from "./pipeline.ts";
import type { Column } from "./row.ts";
import type { Target } from "./target.ts";
import type { Watermark } from "./watermark.ts";

/**
 * - `push-down`: inside one database; rows never reach this process.
 * - `stream`: from one database to another as bytes that nobody looks at.
 * - `rows`: through code tasks, or into a sink that wants values.
 */
export type DataPath = "push-down" | "stream" | "rows";

interface ReadOrder {
  /** Empty: in any order; such a read cannot be continued. */
  readonly orderBy: readonly string[];
  /** True: the row at the position is read again. Needed where a position does not name a single row. */
  readonly inclusive: boolean;
  /** Rows without a value in the first ordering column: met at the end, or left out. */
  readonly nulls: "last" | "excluded";
}

/** A full load reads in the order of the target's key; an incremental one in the order of its cursor. */
export function readOrder(
  { mode, incremental_key, incremental_id_key }: PipelineConfig,
  columns: readonly Column[],
  key: readonly string[],
): ReadOrder {
  if (mode === "incremental") {
    const orderBy = [incremental_key, incremental_id_key].filter((name) => name !== null);
    return { orderBy, inclusive: incremental_id_key === null, nulls: "excluded" };
  }
  // A transform may make the key; then the reader has no order to continue in, and an interrupted load starts over.
  const readable = key.every((name) => columns.some((column) => column.name === name));
  return { orderBy: readable ? key : [], inclusive: false, nulls: "last" };
}

interface KnownState extends Checkpoint {
  readonly watermark: Watermark;
  readonly watermarkFingerprint: string | null;
}

/** `isResumable`: the unfinished full load that the position belongs to is still there. */
export function startPosition(
  { mode }: PipelineConfig,
  state: KnownState,
  fingerprint: string,
  isResumable: boolean,
): ScanPosition | null {
  const unfinished = resumePosition(state, fingerprint);
  if (mode === "full") return isResumable ? unfinished : null;
  if (unfinished !== null) return unfinished;
  const { value, id } = state.watermark;
  if (value === null) return null;
  return id === null ? [value] : [value, id];
}

/** The watermark of another query or key would make an incremental load miss rows. */
export function requireStateOf({ mode, name }: PipelineConfig, state: KnownState, fingerprint: string): void {
  if (mode !== "incremental" || state.watermarkFingerprint === null) return;
  if (state.watermarkFingerprint === fingerprint) return;
  throw new VitrinaError(
    "STATE_OF_OTHER_CONFIG",
    `The checkpoint of ${name} was made by another query, key or target than the present one.`,
  );
}

interface DataPathFacts {
  readonly hasTransforms: boolean;
  readonly targetKind: Target["kind"];
  /** The writer's sessions can become the reader. */
  readonly canPull: boolean;
  readonly inclusive: boolean;
  isSameDatabase(): Promise<boolean>;
  canSeek(): Promise<boolean>;
}

export interface ChosenDataPath {
  readonly dataPath: DataPath;
  /** For people. */
  readonly reason: string;
}

export async function chooseDataPath(facts: DataPathFacts): Promise<ChosenDataPath> {
  const { hasTransforms, targetKind, canPull, inclusive } = facts;
  if (hasTransforms) return { dataPath: "rows", reason: "Code tasks want to see every row." };
  if (targetKind !== "postgres") return { dataPath: "rows", reason: "The target takes values, not bytes of a table." };
  if (!canPull) return stream("No role may both read the sources and write the targets (LOADER_DATABASE_URL).");
  if (inclusive) return stream("Without an incremental_id_key a position does not name a single row.");
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
