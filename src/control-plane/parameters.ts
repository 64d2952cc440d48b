import { z } from "zod";

/** The `:id` in every path below a pipeline. */
export const idParams = z.object({ id: z.string().min(1).describe("The id or the name of the pipeline.") });

const DIGITS = /^-?\d+$/;

/** In a path or a query, where everything is text: digits and nothing else. `Number("")` would be 0. */
export function wholeNumber(minimum: number, maximum: number) {
  return z
    .preprocess(
      (text) => (typeof text === "string" && DIGITS.test(text) ? Number(text) : text),
      z.int().min(minimum).max(maximum),
    )
    .meta({ type: "integer", minimum, maximum });
}

export const pageQuery = z.strictObject({
  limit: wholeNumber(1, 200).default(50).describe("At most this many."),
  after: z.string().max(100).optional().describe("The `next` of the page before."),
});

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable().describe("Null on the last page.") });
}
