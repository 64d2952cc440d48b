/** The messages of the Python worker; `python/vitrina_tasks/host.py` has the other side and describes them. */
import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { TaskRetryLater } from "../retry-later.ts";

export const PROTOCOL = 1;

const described = z.object({
  type: z.literal("described"),
  protocol: z.literal(PROTOCOL),
  tasks: z.array(z.object({ name: z.string(), description: z.string(), params: z.record(z.string(), z.unknown()) })),
});

const opened = z.object({
  type: z.literal("opened"),
  columns: z.array(z.tuple([z.string(), z.string()])),
});

/** Only the outline is checked: looking at each of 40,000 values twice would cost more than the task. */
const applied = z.object({
  type: z.literal("applied"),
  rows: z.int(),
  columns: z.array(z.custom<readonly (string | null)[] | null>((value) => value === null || Array.isArray(value))),
});

const closed = z.object({ type: z.literal("closed") });

const failed = z.object({
  type: z.literal("failed"),
  code: z.enum([
    "TASK_UNKNOWN",
    "TASK_PARAMS_INVALID",
    "TASK_MODULE_INVALID",
    "TASK_FAILED",
    "TASK_RESULT_INVALID",
    "TASK_RETRY_LATER",
  ]),
  message: z.string(),
  problems: z.array(z.object({ pointer: z.string(), message: z.string() })),
  delay_s: z.number().nullable().optional(),
});

const REPLIES = { describe: described, open: opened, apply: applied, close: closed } as const;

export type RequestType = keyof typeof REPLIES;
export type Reply<Type extends RequestType> = z.output<(typeof REPLIES)[Type]>;

/** What arrived is not a reply to the request. */
export class UnreadableReply extends Error {}

/** The reply to a request of this type; throws what the worker reported. */
export function parseReply<Type extends RequestType>(type: Type, line: string): Reply<Type> {
  const message = parseJson(line);
  const failure = failed.safeParse(message);
  if (failure.success) {
    const { code, message: sentence, problems, delay_s } = failure.data;
    if (code === "TASK_RETRY_LATER") throw new TaskRetryLater(sentence, delay_s);
    throw new VitrinaError(code, sentence, { problems });
  }
  const reply = REPLIES[type].safeParse(message);
  if (!reply.success) throw new UnreadableReply(reply.error.message);
  return reply.data as Reply<Type>;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new UnreadableReply((error as Error).message);
  }
}
