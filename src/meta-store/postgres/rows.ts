import { z } from "zod";
import { isPipelineId, type PipelineId, type RunId } from "../../domain/pipeline.ts";

/**
 * Rows become values of the domain by its own schemas. Tables can also be changed by hand, or by another version: a row
 * that does not fit is told with the columns it fails by, and goes no further.
 */

interface FoundRows {
  readonly rows: readonly unknown[];
}

export function rowsOf<T>(schema: z.ZodType<T>, { rows }: FoundRows): T[] {
  return rows.map((row) => decodeRow(schema, row));
}

/** Undefined when the statement found none. */
export function rowOf<T>(schema: z.ZodType<T>, { rows }: FoundRows): T | undefined {
  return rows[0] === undefined ? undefined : decodeRow(schema, rows[0]);
}

export function decodeRow<T>(schema: z.ZodType<T>, row: unknown): T {
  const decoded = schema.safeParse(row);
  if (decoded.success) return decoded.data;
  const reasons = decoded.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`a row of the meta-store cannot be read: ${reasons.join("; ")}`);
}

const isId = (value: unknown): boolean => typeof value === "string" && isPipelineId(value);
export const pipelineId = z.custom<PipelineId>(isId, "It must be an id.");
export const runId = z.custom<RunId>(isId, "It must be an id.");
