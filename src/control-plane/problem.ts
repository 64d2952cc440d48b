import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { VitrinaError } from "../domain/error-catalogue.ts";

export const PROBLEM_TYPE = "application/problem+json";

/** RFC 9457 problem details; `detail` is always a sentence for a person. */
export const problemSchema = z
  .looseObject({
    type: z.string().describe("Names the kind of problem; as stable as the code."),
    title: z.string().describe("The kind of problem in a few words."),
    status: z.int().describe("The HTTP status."),
    detail: z.string().describe("What went wrong this time."),
    instance: z.string().describe("The path that was asked."),
    code: z.string().describe("Stable; programs decide by it."),
    hint: z.string().describe("What to do next."),
    errors: z
      .array(
        z.object({
          pointer: z.string().describe("JSON pointer to the field."),
          message: z.string(),
          line: z.int().optional().describe("Where in the query, from 1."),
          column: z.int().optional(),
        }),
      )
      .optional()
      .describe("Every mistake in the request."),
    role_needed: z.string().optional().describe("The role that the operation needs."),
    role_held: z.string().nullable().optional().describe("The role that the caller has."),
    pipeline_status: z.string().optional().describe("The status that does not allow the request."),
    line: z.int().optional().describe("Where in the query, from 1."),
    column: z.int().optional(),
    config_version: z.int().optional().describe("The version that If-Match does not fit."),
    request_id: z.string().optional().describe("Find the request in the log by it."),
  })
  .describe("Problem details (RFC 9457).");

/** `error` must be fit for strangers: its sentence is sent as it is. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  error: VitrinaError,
  status: number = error.httpStatus,
): FastifyReply {
  const body = problemBody(error, pathOf(request), status);
  request.refusal = error.code;
  if ([429, 503].includes(status) && !reply.hasHeader("retry-after")) reply.header("retry-after", "2");
  // Sent as text: a route's answer schema describes its success, not its problems.
  return reply.code(status).type(PROBLEM_TYPE).serializer(String).send(JSON.stringify(body));
}

export function problemBody(error: VitrinaError, path: string, status: number = error.httpStatus): object {
  return {
    type: `urn:vitrina:error:${error.code.toLowerCase().replaceAll("_", "-")}`,
    title: error.title,
    status,
    detail: error.message,
    instance: path,
    code: error.code,
    hint: error.hint,
    ...(error.problems.length > 0 && { errors: error.problems }),
    ...error.extra,
  };
}

export function pathOf(request: FastifyRequest): string {
  return request.url.replace(/\?.*$/s, "");
}

const DESCRIPTIONS = {
  400: "The request cannot be read.",
  401: "The login is missing or not valid.",
  403: "The caller's role does not allow it.",
  404: "What the path names does not exist.",
  409: "The state of the pipeline, or another pipeline, does not allow it.",
  412: "Somebody changed the pipeline since the ETag in If-Match was answered.",
  413: "The body is too large.",
  415: "The body is not JSON.",
  422: "The request is not valid; `errors` points at each field.",
  429: "There were too many requests, or too many of this kind are under way; `Retry-After` says when to come back.",
  503: "The database cannot be reached.",
} as const;

type ProblemStatus = keyof typeof DESCRIPTIONS;

const described = (description: string) => ({ description, content: { [PROBLEM_TYPE]: { schema: problemSchema } } });

/** What an operation can answer besides success, for its documentation. */
export function problems(...statuses: ProblemStatus[]): Record<string, ReturnType<typeof described>> {
  const listed = statuses.map((status) => [status, described(DESCRIPTIONS[status])]);
  return { ...Object.fromEntries(listed), "5xx": described("Vitrina or its database is in trouble.") };
}
