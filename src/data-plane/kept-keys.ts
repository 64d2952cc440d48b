import type { RowBatch } from "../connectors/row-batch.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column, Row } from "../domain/row.ts";
import type { Load } from "./run-context.ts";

/**
 * Where changes are followed by their keys, a code task must not make others: such a row would never be computed again, and
 * never be deleted. It may drop rows.
 */
export function requireKeptKeys(
  { pipeline, plan, writer, columns, transform }: Load,
  given: RowBatch,
  made: RowBatch,
): void {
  if (pipeline.mode !== "follow" || plan.transforms.length === 0) return;
  const known = new Set(keyTexts(given.rows(), writer.key, columns));
  if (keyTexts(made.rows(), writer.key, transform.columns).every((key) => known.has(key))) return;
  const names = writer.key.map((name) => `"${name}"`).join(", ");
  throw new VitrinaError("KEY_CHANGED_BY_TASK", `A code task returned a row with another ${names} than it was given.`);
}

/** The key of each row as one text. */
export function keyTexts(rows: readonly Row[], key: readonly string[], columns: readonly Column[]): string[] {
  const places = key.map((name) => columns.findIndex((column) => column.name === name));
  return rows.map((row) => JSON.stringify(places.map((place) => row[place] ?? null)));
}
