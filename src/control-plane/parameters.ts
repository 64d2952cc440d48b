import { z } from "zod";

/** The `:id` in every path below a pipeline. */
export const idParams = z.object({ id: z.string().min(1).describe("The id or the name of the pipeline.") });

export const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("At most this many."),
  after: z.string().max(100).optional().describe("The `next` of the page before."),
});

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable().describe("Null on the last page.") });
}
