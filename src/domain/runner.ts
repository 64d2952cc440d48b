import { z } from "zod";
import { PIPELINE_STATUSES } from "./pipeline-status.ts";
import { RUN_KINDS } from "./run.ts";

/** A process that executes pipelines, as others see it. */
export const runnerSchema = z.object({
  id: z.guid(),
  hostname: z.string(),
  pid: z.int(),
  version: z.string(),
  alive: z.boolean().describe("It has not stopped, and was heard from recently."),
  started_at: z.date(),
  last_seen_at: z.date(),
  stopped_at: z.date().nullable().describe("Null if it did not report its end."),
  holds: z
    .array(
      z.object({
        pipeline_id: z.guid(),
        pipeline_name: z.string(),
        status: z.enum(PIPELINE_STATUSES),
        run_id: z.guid(),
        kind: z.enum(RUN_KINDS),
        lease_expires_at: z.string().describe("When others may take the run over, unless it is extended."),
      }),
    )
    .describe("The runs that it holds, each with its pipeline and that pipeline's status."),
});
export type RunnerView = z.infer<typeof runnerSchema>;

/** A code task that runners have registered. */
export const registeredTaskSchema = z.object({
  name: z.string().describe("What a pipeline writes as the body of its task."),
  language: z.enum(["TYPESCRIPT", "PYTHON"]),
  description: z.string(),
  params: z.record(z.string(), z.unknown()).describe("JSON Schema of the parameters."),
  runners: z.array(z.guid()).describe("The live runners that have it."),
});
export type RegisteredTask = z.infer<typeof registeredTaskSchema>;
