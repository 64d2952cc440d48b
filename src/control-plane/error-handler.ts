import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { Log } from "../observability/log.ts";
import type { Api } from "./api.ts";
import { bodyTooLarge, unsupportedMediaType } from "./body-parser.ts";
import { PROBLEM_TYPE, pathOf, problemBody, sendProblem } from "./problem.ts";

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
      // Not a file of the documentation, or one outside its folder.
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

/** Errors of the meta-store itself name hosts, roles and tables: they go to the log only. */
function forStrangers(error: VitrinaError, { id }: FastifyRequest): VitrinaError {
  if (error.code === "DATABASE_BUSY")
    return new VitrinaError(error.known, "The database could not finish in time.", { cause: error });
  if (mayPass(error.retry)) return new VitrinaError(error.known, `${error.title} at the moment.`, { cause: error });
  switch (error.code) {
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

/** Answers what never became a request: not HTTP, headers without end, or a sender who stops in the middle. */
export function handleClientError(log: Log) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
    const problem = whyNoRequest(error);
    const body = JSON.stringify(problemBody(problem, "/"));
    log.debug({ request_id: randomUUID(), code: problem.code }, "not a request");
    const head = [
      `HTTP/1.1 ${problem.httpStatus} ${STATUS_CODES[problem.httpStatus]}`,
      `content-type: ${PROBLEM_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      "connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  };
}

function whyNoRequest(error: NodeJS.ErrnoException): VitrinaError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new VitrinaError("HEADERS_TOO_LARGE", "The URL and the headers together are larger than 16 KiB.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new VitrinaError("REQUEST_TIMEOUT", "The request did not arrive completely in time.");
    default:
      return new VitrinaError("MALFORMED_REQUEST", "What was sent is not HTTP.", { hint: "Send an HTTP/1.1 request." });
  }
}

/**
 * The router answers 404 where a path exists but not with that method. To answer 405 and name the methods, every path
 * registered by `register` also gets a route for the methods it lacks.
 */
export async function withOtherMethodsRefused(api: Api, register: () => Promise<void>): Promise<void> {
  const methodsOf = new Map<string, Set<string>>();
  let collecting = true;
  api.addHook("onRoute", ({ url, method }) => {
    if (!collecting) return;
    methodsOf.set(url, new Set([...(methodsOf.get(url) ?? []), ...[method].flat()]));
  });
  await register();
  collecting = false;
  for (const [url, methods] of methodsOf) refuseOtherMethods(api, url, methods);
}

function refuseOtherMethods(api: Api, url: string, methods: ReadonlySet<string>): void {
  const allow = [...methods].sort().join(", ");
  api.route({
    url,
    method: api.supportedMethods.filter((method) => !methods.has(method)),
    schema: { hide: true },
    config: { access: "anyone" },
    // Before the body is looked at: whatever it is, the method is wrong.
    onRequest: async (request, reply) => {
      reply.header("allow", allow);
      throw new VitrinaError("METHOD_NOT_ALLOWED", `${pathOf(request)} has no ${request.method}, only ${allow}.`);
    },
    handler: () => undefined,
  });
}
