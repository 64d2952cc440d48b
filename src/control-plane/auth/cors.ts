import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiSettings } from "../../settings/api-settings.ts";

const PREFLIGHT = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "authorization, content-type, if-match, idempotency-key",
  "access-control-max-age": "600",
};

/**
 * Lets the pages of the allow-list read answers. Never with credentials: a page sends its key itself, and a browser
 * adds nothing on its own. Returns the answer to a preflight request.
 */
export function answerCors(
  request: FastifyRequest,
  reply: FastifyReply,
  { corsOrigins }: ApiSettings,
): FastifyReply | undefined {
  if (corsOrigins.length === 0) return undefined;
  reply.header("vary", "origin");
  const { origin } = request.headers;
  if (origin === undefined || !corsOrigins.includes(origin)) return undefined;
  reply.header("access-control-allow-origin", origin);
  reply.header("access-control-expose-headers", "location, etag, retry-after");
  const isPreflight = request.method === "OPTIONS" && "access-control-request-method" in request.headers;
  return isPreflight ? reply.code(204).headers(PREFLIGHT).send() : undefined;
}
