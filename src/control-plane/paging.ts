import { z } from "zod";

export const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("At most this many."),
  after: z.string().max(100).optional().describe("The `next` of the page before."),
});

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable().describe("Null on the last page.") });
}
