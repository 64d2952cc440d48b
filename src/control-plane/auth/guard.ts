import type { FastifyReply } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Api, ApiParts } from "../api.ts";
import { handleUnknownPath } from "../error-handler.ts";
import { requireAllowedHost, requireOwnOrigin } from "./addressed-host.ts";
import { BadLogin } from "./bad-login.ts";
import { answerCors } from "./cors.ts";
import { createLogIn } from "./log-in.ts";
import { createRateLimits } from "./rate-limits.ts";
import { requireRole } from "./require-role.ts";
import { requireAccessOfEveryRoute } from "./route-access.ts";

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
    // Even before the body is looked at: whatever it is, nothing is there to take it.
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

/** RFC 6750: says how to log in, and whether what was sent is the trouble. */
function asChallenge(error: unknown, reply: FastifyReply): unknown {
  if (error instanceof VitrinaError && error.code === "UNAUTHENTICATED") {
    const reason = error instanceof BadLogin ? ', error="invalid_token"' : "";
    reply.header("www-authenticate", `Bearer realm="vitrina"${reason}`);
  }
  return error;
}
