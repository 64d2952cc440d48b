import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Log } from "../observability/log.ts";
import { PROBLEM_TYPE, problemBody } from "./problem.ts";

/** Answers what never became a request: not HTTP, headers without end, or a sender who stops in the middle. */
export function handleClientError(log: Log) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
    const problem = describe(error);
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

function describe(error: NodeJS.ErrnoException): VitrinaError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new VitrinaError("HEADERS_TOO_LARGE", "The URL and the headers together are larger than 16 KiB.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new VitrinaError("REQUEST_TIMEOUT", "The request did not arrive completely in time.");
    default:
      return new VitrinaError("MALFORMED_REQUEST", "What was sent is not HTTP.", { hint: "Send an HTTP/1.1 request." });
  }
}
