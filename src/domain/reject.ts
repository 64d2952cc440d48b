import { z } from "zod";

/** A row that the target refused, set aside so that the rest could be written. */

const values = z.record(z.string(), z.string().nullable());

export const rejectSchema = z.object({
  id: z.int(),
  run_id: z.guid().describe("The run that met the row."),
  state: z.enum(["OPEN", "RETRY_REQUESTED"]),
  key: values.nullable(),
  row: values.describe("The row as it was sent to the target, in exact texts. A retry reads it from the source again."),
  error_code: z.string(),
  error: z.string(),
  created_at: z.date(),
});
export type Reject = z.infer<typeof rejectSchema>;
