import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Log } from "../observability/log.ts";
import { bodyTooLarge, unsupportedMediaType } from "./body-parser.ts";
import { pathOf, sendProblem } from "./problem.ts";

export function handleError(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const problem = forStrangers(toVitrinaError(error, request), request);
    if (problem.httpStatus >= 500) {
      const { id, method, url } = request;
      log.error({ err: error, request_id: id, method, url }, "request failed");
    }
    return sendProblem(request, reply, problem);
  };
}

export function handleUnknownPath(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(request, reply, unknownPath(request));
}

function unknownPath(request: FastifyRequest): VitrinaError {
  return new VitrinaError("NOT_FOUND", `There is nothing at ${request.method} ${pathOf(request)}.`, {
    hint: "See /docs for every path.",
  });
}

/** What Fastify throws by itself becomes an error of the catalogue. */
function toVitrinaError(error: FastifyError, request: FastifyRequest): VitrinaError {
  if (error instanceof VitrinaError) return error;
  switch (error.statusCode) {
    case 400:
      return malformedRequest(error);
    case 403:
    case 404:
      // A file of the documentation that is none, or lies elsewhere.
      return unknownPath(request);
    case 413:
      return bodyTooLarge(error);
    case 414:
      // A part of the path that is longer than any id or name.
      return unknownPath(request);
    case 415:
      return unsupportedMediaType(error);
    default:
      // A NUL in the name of a file.
      if (error.code === "ERR_INVALID_ARG_VALUE") return unknownPath(request);
      return new VitrinaError("INTERNAL", error.message, { cause: error });
  }
}

function malformedRequest(error: FastifyError): VitrinaError {
  if (error.code === "FST_ERR_BAD_URL") {
    return new VitrinaError("MALFORMED_REQUEST", "The path is not a valid URL: a % in it encodes no UTF-8 character.", {
      hint: "Write a % as %25, and other special characters as %XX.",
      cause: error,
    });
  }
  return new VitrinaError("MALFORMED_REQUEST", `${error.message.replace(/\.$/, "")}.`, { cause: error });
}

/** What the meta-store says about its own trouble names hosts, roles and tables: that is for the log only. */
function forStrangers(error: VitrinaError, { id }: FastifyRequest): VitrinaError {
  switch (error.code) {
    case "DATABASE_UNAVAILABLE":
      return new VitrinaError(error.code, "The database cannot be reached at the moment.", { cause: error });
    case "DATABASE_BUSY":
      return new VitrinaError(error.code, "The database could not finish in time.", { cause: error });
    case "TOO_MANY_CONNECTIONS":
    case "DISK_FULL":
      return new VitrinaError(error.code, `${error.title} at the moment.`, { cause: error });
    case "LOGIN_UNAVAILABLE":
      return error;
    // Here they speak of Vitrina's own tables, so the caller did nothing wrong.
    case "PERMISSION_DENIED":
    case "ROW_REFUSED":
      return internal(error, id);
    default:
      return error.httpStatus >= 500 ? internal(error, id) : error;
  }
}

function internal(cause: VitrinaError, requestId: string): VitrinaError {
  const detail = `Vitrina could not answer. The log says why, under the request id ${requestId}.`;
  return new VitrinaError("INTERNAL", detail, { cause, extra: { request_id: requestId } });
}
