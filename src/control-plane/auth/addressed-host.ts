import type { FastifyRequest } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { ApiSettings } from "../../settings/api-settings.ts";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Against DNS rebinding: a web page may point its own name at this machine, and the browser then sends requests here
 * as if they stayed at home. They carry the page's name as Host.
 */
export function requireAllowedHost(request: FastifyRequest, { allowedHosts }: ApiSettings): void {
  const { host } = request.headers;
  if (host === undefined && request.raw.httpVersion === "1.1") {
    throw new VitrinaError("MALFORMED_REQUEST", "The request has no header host.", {
      hint: "HTTP/1.1 asks for a host header in each request.",
    });
  }
  if (allowedHosts === undefined) return;
  const name = host?.replace(/:\d+$/, "").toLowerCase();
  if (name !== undefined && allowedHosts.includes(name)) return;
  throw new VitrinaError("HOST_NOT_ALLOWED", "The request is addressed to a host that this API does not answer for.");
}

/**
 * Without a login, whatever runs in this machine's browser could change pipelines: a page of the Internet can send a
 * POST here, although it cannot read the answer. Browsers name the page's origin in such a request; programs do not.
 */
export function requireOwnOrigin(request: FastifyRequest, { loginRequired, corsOrigins }: ApiSettings): void {
  const { origin, host } = request.headers;
  if (loginRequired || origin === undefined || SAFE_METHODS.includes(request.method)) return;
  if (origin === `http://${host}` || corsOrigins.includes(origin)) return;
  throw new VitrinaError("ORIGIN_NOT_ALLOWED", "The request comes from a web page of another origin.");
}
