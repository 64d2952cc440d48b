import { createHash } from "node:crypto";
import type { PipelineConfig } from "./pipeline.ts";

/**
 * Where a pipeline is. Positions are the exact texts PostgreSQL printed for the ordering columns of the last row; they
 * are compared and ordered only in SQL, never here, because a JavaScript Date or number would round them.
 */
export type ScanPosition = readonly string[];

export interface Checkpoint {
  /** Where the unfinished load stands; `null` when the next run starts from the beginning. */
  readonly scanPosition: ScanPosition | null;
  /** Counts committed batches; every commit expects the number it read. */
  readonly batchNo: number;
  /** Which query and key the position belongs to. */
  readonly fingerprint: string | null;
}

/** A position is only meaningful for the query, key and target that made it. */
export function configFingerprint(config: PipelineConfig): string {
  const meaning = [
    config.source_connection,
    config.source_query,
    config.tasks,
    config.target_table,
    config.target_key,
    config.mode,
    config.incremental_key,
    config.incremental_id_key,
  ];
  return createHash("sha256").update(JSON.stringify(meaning)).digest("hex");
}

/** Which rows a target gets, however they are found: two modes with the same query write the same. */
export function rowsFingerprint(config: PipelineConfig): string {
  const meaning = [config.source_connection, config.source_query, config.tasks, config.target_key];
  return createHash("sha256").update(JSON.stringify(meaning)).digest("hex");
}

/** The position to continue from: none when the configuration that made it has changed since. */
export function resumePosition(checkpoint: Checkpoint, fingerprint: string): ScanPosition | null {
  return checkpoint.fingerprint === fingerprint ? checkpoint.scanPosition : null;
}
