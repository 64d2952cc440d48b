import { z } from "zod";
import type { CodedProblem } from "../../domain/error-catalogue.ts";
import { columnName, type PipelineConfig } from "../../domain/pipeline.ts";

/** Passed on as it is; the cluster knows best what it means. */
const jsonObject = z.record(z.string(), z.unknown());

/** Options that only a search index has; the rest follows from the query. */
export const indexOptions = z.strictObject({
  mapping: z
    .record(columnName, jsonObject)
    .optional()
    .describe("Index: the definition of a field, instead of the one that follows from the column's type."),
  settings: jsonObject.optional().describe("Index: its settings, such as analysis or number_of_shards."),
  keep_previous_hours: z
    .int()
    .min(0)
    .max(24 * 365)
    .optional()
    .describe("Index, full mode: how long the index before the last load is kept at least; 24 by default."),
  delete_when: columnName
    .optional()
    .describe("Index: a boolean column; a row in which it is true is deleted instead of written."),
  adopt: z
    .boolean()
    .optional()
    .describe(
      "Index, full mode: an index that has the target's name itself gives way to an alias when the load is complete, in one step. Its documents are deleted then.",
    ),
  write: z
    .enum(["replace", "merge"])
    .optional()
    .describe(
      "Index: replace (the default) leaves a document with the columns of the query alone; merge keeps the fields that others added to it. Merge only in incremental mode, and without delete_when.",
    ),
});
export type IndexOptions = z.infer<typeof indexOptions>;

/** Options that would remove fields that others added, although merge promises to keep them. */
export function mergeProblems(
  { write, delete_when }: IndexOptions,
  { mode, sweep }: PipelineConfig,
): readonly CodedProblem[] {
  if (write !== "merge") return [];
  const problem = (message: string): CodedProblem => ({
    code: "TARGET_NOT_ALLOWED",
    pointer: "/target_options/write",
    message,
  });
  return [
    ...(mode === "incremental"
      ? []
      : [problem("A full load builds a new index from the query alone: merge needs mode incremental.")]),
    ...(sweep === null ? [] : [problem("A sweep builds a new index from the query alone: merge needs sweep null.")]),
    ...(delete_when === undefined
      ? []
      : [problem("delete_when deletes whole documents, with the fields that merge is to keep: choose one of them.")]),
  ];
}
