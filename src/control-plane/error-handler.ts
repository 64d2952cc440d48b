import { STATUS_CODES } from "node:http";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { z } from "zod";
import { ERROR_CATALOGUE, type Problem, VitrinaError } from "../domain/error-catalogue.ts";
import type { Log } from "../observability/log.ts";

/** RFC 9457 problem details; `detail` is always a sentence for a person. */
export const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string(),
  code: z.string().describe("Stable; programs decide by it."),
  hint: z.string().describe("What to do next."),
  errors: z.array(z.object({ pointer: z.string(), message: z.string() })).optional(),
});

export function handleError(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = toVitrinaError(error);
    if (known.httpStatus >= 500) log.error({ err: error, method: request.method, url: request.url }, "request failed");
    return sendProblem(request, reply, known);
  };
}

export function handleUnknownRoute(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split("?")[0];
  return sendProblem(
    request,
    reply,
    new VitrinaError("NOT_FOUND", `There is nothing at ${request.method} ${path}.`, {
      hint: "See /docs for every path.",
    }),
  );
}

function sendProblem(request: FastifyRequest, reply: FastifyReply, error: VitrinaError): FastifyReply {
  const status = error.httpStatus;
  const body = {
    type: `urn:vitrina:error:${error.code.toLowerCase().replaceAll("_", "-")}`,
    title: ERROR_CATALOGUE[error.code].title,
    status,
    detail: status === 500 ? `${STATUS_CODES[500]}. The log says more.` : error.message,
    instance: request.url.split("?")[0],
    code: error.code,
    hint: error.hint,
    ...(error.problems.length > 0 && { errors: error.problems }),
    ...error.extra,
  };
  if (status === 503) reply.header("retry-after", "2");
  // Sent as text: a route's answer schema describes its success, not its problems.
  return reply.code(status).type("application/problem+json").serializer(String).send(JSON.stringify(body));
}

function toVitrinaError(error: FastifyError): VitrinaError {
  if (error instanceof VitrinaError) return error;
  if (hasZodFastifySchemaValidationErrors(error)) return invalidRequest(error);
  switch (error.statusCode) {
    case 400:
      return new VitrinaError("MALFORMED_REQUEST", `${withoutDot(error.message)}.`, { cause: error });
    case 413:
      return new VitrinaError("BODY_TOO_LARGE", "The body is larger than 256 KiB.", { cause: error });
    case 415:
      return new VitrinaError("UNSUPPORTED_MEDIA_TYPE", "This path takes JSON only.", { cause: error });
    default:
      return new VitrinaError("INTERNAL", error.message, { cause: error });
  }
}

interface SchemaIssue {
  readonly instancePath: string;
  readonly message?: string | undefined;
  readonly params?: unknown;
}

function invalidRequest(error: {
  validation: readonly SchemaIssue[];
  validationContext?: string | undefined;
}): VitrinaError {
  const problems: Problem[] = error.validation.flatMap(describeIssue);
  const where = error.validationContext ?? "body";
  const sentence = problems.map(
    ({ pointer, message }) => `${pointer === "" ? `the ${where}` : pointer}: ${withoutDot(message)}`,
  );
  return new VitrinaError("INVALID_REQUEST", `The ${where} is not valid: ${sentence.join("; ")}.`, { problems });
}

function describeIssue({ instancePath, message = "It is not valid.", params }: SchemaIssue): Problem[] {
  const place = instancePath.replace(/\/$/, "");
  const keys = (params as { keys?: unknown } | undefined)?.keys;
  if (Array.isArray(keys)) {
    return keys.map((key) => ({ pointer: `${place}/${String(key)}`, message: "There is no such field." }));
  }
  return [{ pointer: place, message: message.endsWith("received undefined") ? "It is required." : message }];
}

function withoutDot(text: string): string {
  return text.replace(/\.$/, "");
}
