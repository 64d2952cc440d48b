import { z } from "zod";

/** The `:id` in every path below a pipeline. */
export const idParams = z.object({ id: z.string().min(1).describe("The id or the name of the pipeline.") });
