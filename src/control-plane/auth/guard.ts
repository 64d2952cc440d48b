import rateLimit from "@fastify/rate-limit";
import type { FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { ApiSettings } from "../../settings/api-settings.ts";
import type { Api, ApiParts } from "../api.ts";
import { handleUnknownPath } from "../error-handler.ts";
import { BadLogin, createLogIn } from "./login.ts";
import { requireAccessOfEveryRoute, requireRole } from "./route-access.ts";

/** Everything that a request must pass before its body is looked at. Install it before any route. */
export async function installGuard(api: Api, parts: ApiParts): Promise<void> {
  const { api: settings } = parts;
  const limits = await createRateLimits(api, settings);
  const logIn = createLogIn(parts);
  requireAccessOfEveryRoute(api);
  api.decorateRequest("caller", undefined);

  api.addHook("onRequest", async (request, reply) => {
    requireAllowedHost(request, settings);
    const preflight = answerCors(request, reply, settings);
    if (preflight !== undefined) return preflight;
    requireOwnOrigin(request, settings);
    await limits.byAddress(request, reply);
    // Before the body is even looked at: nothing here accepts it.
    if (request.is404) return handleUnknownPath(request, reply);

    const { access } = request.routeOptions.config;
    if (access === "anyone") return undefined;
    request.caller = await logIn(request).catch(async (error: unknown) => {
      if (error instanceof BadLogin) await limits.byFailedLogin(request, reply);
      throw asChallenge(error, reply);
    });
    requireRole(request, access);
    return limits.byCaller(request, reply);
  });
}

/** RFC 6750: says how to log in, and whether the token that was sent is the problem. */
function asChallenge(error: unknown, reply: FastifyReply): unknown {
  if (error instanceof VitrinaError && error.code === "UNAUTHENTICATED") {
    const reason = error instanceof BadLogin ? ', error="invalid_token"' : "";
    reply.header("www-authenticate", `Bearer realm="vitrina"${reason}`);
  }
  return error;
}

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Against DNS rebinding: a web page may point its own name at this machine, and the browser then sends requests here
 * as if they stayed at home. They carry the page's name as Host.
 */
function requireAllowedHost(request: FastifyRequest, { allowedHosts }: ApiSettings): void {
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
function requireOwnOrigin(request: FastifyRequest, { loginRequired, corsOrigins }: ApiSettings): void {
  const { origin, host } = request.headers;
  if (loginRequired || origin === undefined || SAFE_METHODS.includes(request.method)) return;
  if (origin === `http://${host}` || corsOrigins.includes(origin)) return;
  throw new VitrinaError("ORIGIN_NOT_ALLOWED", "The request comes from a web page of another origin.");
}

const PREFLIGHT = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "access-control-allow-headers": "authorization, content-type, if-match, idempotency-key",
  "access-control-max-age": "600",
};

/**
 * Lets the pages of the allow-list read answers. Never with credentials: a page sends its key itself, and a browser
 * adds nothing on its own. Returns the answer to a preflight request.
 */
function answerCors(
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

const RATE_WINDOW_MS = 60_000;
/** Several callers may share an address, behind a proxy or on one machine. */
const CALLERS_PER_ADDRESS = 5;

type Limit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

interface RateLimits {
  /** Checked before anything is known about the caller. */
  byAddress: Limit;
  byCaller: Limit;
  /** Counts only failed logins: a caller with a valid key is not locked out by a neighbour without one. */
  byFailedLogin: Limit;
}

/** Counted in this process; several API processes count separately. */
async function createRateLimits(api: Api, settings: ApiSettings): Promise<RateLimits> {
  await api.register(rateLimit, { global: false });
  const { requestsPerMinute, failedLoginsPerMinute } = settings;
  const tooMany = (): VitrinaError =>
    new VitrinaError("RATE_LIMITED", "There were too many requests within one minute.");
  const tooManyFailures = (): VitrinaError =>
    new VitrinaError("TOO_MANY_FAILED_LOGINS", "Too many logins from this address failed within one minute.");
  const byIp = (request: FastifyRequest): string => request.ip;
  return {
    byAddress: createLimit(api, requestsPerMinute * CALLERS_PER_ADDRESS, byIp, tooMany),
    byCaller: createLimit(api, requestsPerMinute, callerOf, tooMany),
    byFailedLogin: createLimit(api, failedLoginsPerMinute, byIp, tooManyFailures),
  };
}

function callerOf({ caller }: FastifyRequest): string {
  return caller?.keyId ?? caller?.name ?? "";
}

function createLimit(
  api: Api,
  max: number,
  keyGenerator: (request: FastifyRequest) => string,
  refusal: () => VitrinaError,
): Limit {
  if (max === 0) return async () => undefined;
  const count = api.createRateLimit({ max, timeWindow: RATE_WINDOW_MS, keyGenerator });
  return async (request, reply) => {
    const state = await count(request);
    if (state.isAllowed || !state.isExceeded) return;
    reply.header("retry-after", String(Math.max(1, state.ttlInSeconds)));
    throw refusal();
  };
}
