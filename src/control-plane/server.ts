import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import helmet from "@fastify/helmet";
import Fastify from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Log } from "../observability/log.ts";
import type { ApiSettings } from "../settings/api-settings.ts";
import type { Api, ApiParts } from "./api.ts";
import { auditRoutes } from "./audit/routes.ts";
import { keepAuditTrail } from "./auth/audit-trail.ts";
import { installGuard } from "./auth/guard.ts";
import { hideTaskWords } from "./auth/task-words.ts";
import { acceptJsonOnly, BODY_LIMIT_BYTES } from "./body-parser.ts";
import { ChangeListener } from "./changes/change-listener.ts";
import { EventFeed } from "./changes/event-feed.ts";
import { eventRoutes } from "./changes/routes.ts";
import { limitConcurrency, takeTurns } from "./concurrency-limit.ts";
import { handleClientError, handleError, handleUnknownPath, withOtherMethodsRefused } from "./error-handler.ts";
import { followRoutes } from "./follow/routes.ts";
import { graphRoutes } from "./graph/routes.ts";
import { healthRoutes } from "./health/routes.ts";
import { keyRoutes } from "./keys/routes.ts";
import { createFollowGauges } from "./metrics/follow-gauges.ts";
import { createPipelineGauges } from "./metrics/pipeline-gauges.ts";
import { countRequests, metricsRoutes, type ScrapedGauges } from "./metrics/routes.ts";
import { hideFromDocumentation, registerDocumentation } from "./openapi.ts";
import { applyRoute } from "./pipelines/apply.ts";
import { pipelineRoutes, reloadConfigRoute } from "./pipelines/routes.ts";
import { stateRoutes } from "./pipelines/state-routes.ts";
import { previewRoutes } from "./preview/routes.ts";
import { reconcileRoutes } from "./reconcile/routes.ts";
import { refuseOtherSchemas } from "./refuse-other-schemas.ts";
import { rejectRoutes } from "./rejects/routes.ts";
import { makeRequestsRepeatable } from "./repeatable-requests.ts";
import { runnerRoutes } from "./runners/routes.ts";
import { runRoutes } from "./runs/routes.ts";
import { taskRoutes } from "./tasks/routes.ts";
import { validateRoutes } from "./validate/routes.ts";
import { validatorCompiler } from "./validation.ts";
import { versionRoutes } from "./versions/routes.ts";

/** The control-plane: reads and writes the meta-store, and asks sources and targets only to explain themselves. */
export async function buildServer(given: Omit<ApiParts, "asking">): Promise<Api> {
  const parts = { ...given, asking: takeTurns(MOST_QUESTIONS_AT_ONCE, "checks of queries", ASKING_PATIENCE_MS) };
  const onError = handleError(parts.log);
  const api = Fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    genReqId: () => randomUUID(),
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: onError,
    clientErrorHandler: handleClientError(parts.log),
    ...receivingLimits(parts.api),
  }).withTypeProvider<ZodTypeProvider>() as Api;
  api.setErrorHandler(onError);
  api.setNotFoundHandler(handleUnknownPath);
  api.setValidatorCompiler(validatorCompiler);
  // Not checked again: a row that somebody wrote by hand must be shown, however odd, or nobody could fix it.
  api.setSerializerCompiler(() => (data) => JSON.stringify(data));
  acceptJsonOnly(api);
  logRequests(api, parts.log);
  makeRequestsRepeatable(api, parts.store.answers, parts.log);
  countRequests(api, parts.registry);
  const watching = { ...watchChanges(api, parts), gauges: openGauges(api, parts) };
  closePromptly(api);

  await api.register(helmet, SECURITY_HEADERS);
  keepAuditTrail(api, parts);
  hideTaskWords(api);
  await installGuard(api, parts);
  refuseOtherSchemas(api, parts.store);
  await registerDocumentation(api, parts);
  await withOtherMethodsRefused(api, () => registerRoutes(api, parts, watching));
  return api;
}

/** Answers are data: nothing in them is to be run, framed or guessed at. The documentation has a policy of its own. */
const SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"] },
  },
  // HSTS is up to whatever terminates TLS in front.
  strictTransportSecurity: false,
};

/** A slow sender must not hold a connection forever. */
function receivingLimits({ requestTimeoutMs, trustedProxies }: ApiSettings) {
  return {
    requestTimeout: requestTimeoutMs,
    http: {
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(requestTimeoutMs, 5000),
      // Answered by the guard, with a sentence.
      requireHostHeader: false,
    },
    ...(trustedProxies.length > 0 && { trustProxy: [...trustedProxies] }),
  };
}

/** Each of these may keep a source busy. */
const MOST_QUESTIONS_AT_ONCE = 4;
/** Shorter than most clients wait for an answer. */
const ASKING_PATIENCE_MS = 20_000;

interface Watching {
  readonly listener: ChangeListener;
  readonly feed: EventFeed;
}

/** Waiting requests and event streams are released when the server stops, so that it need not wait for them. */
function watchChanges(api: Api, { store, log }: ApiParts): Watching {
  const listener = new ChangeListener(store.changes);
  const feed = new EventFeed(store.changes, listener, log);
  api.addHook("preClose", async () => {
    feed.close();
    await listener.close();
  });
  return { listener, feed };
}

function openGauges(api: Api, parts: ApiParts): ScrapedGauges {
  const ofFollowing = createFollowGauges(parts);
  api.addHook("preClose", () => ofFollowing.close());
  return { ofPipelines: createPipelineGauges(parts.registry, parts.store.monitoring, parts.log), ofFollowing };
}

async function registerRoutes(
  api: Api,
  parts: ApiParts,
  { listener, feed, gauges }: Watching & { readonly gauges: ScrapedGauges },
): Promise<void> {
  const open = { schema: { hide: true }, config: { access: "anyone" } } as const;
  api.get("/", open, (_, reply) => reply.redirect("/docs"));
  const validations = limitConcurrency(MOST_QUESTIONS_AT_ONCE, "validations");
  const previews = limitConcurrency(MOST_QUESTIONS_AT_ONCE, "previews");
  // The same paths answer with and without the prefix; only the first are documented.
  for (const { prefix, documented } of [
    { prefix: "/api/v1", documented: true },
    { prefix: "", documented: false },
  ]) {
    await api.register(
      async (scope: Api) => {
        if (!documented) hideFromDocumentation(scope);
        validateRoutes(scope, parts, validations);
        previewRoutes(scope, parts, previews);
        pipelineRoutes(scope, parts, listener);
        applyRoute(scope, parts);
        reloadConfigRoute(scope, parts);
        stateRoutes(scope, parts);
        versionRoutes(scope, parts);
        taskRoutes(scope, parts);
        runRoutes(scope, parts, listener);
        runnerRoutes(scope, parts);
        eventRoutes(scope, parts, feed);
        reconcileRoutes(scope, parts);
        rejectRoutes(scope, parts);
        followRoutes(scope, parts);
        graphRoutes(scope, parts);
        healthRoutes(scope, parts);
        metricsRoutes(scope, parts.registry, gauges);
        keyRoutes(scope, parts);
        auditRoutes(scope, parts);
        scope.get("/openapi.json", open, () => api.swagger());
      },
      { prefix },
    );
  }
}

function logRequests(api: Api, log: Log): void {
  api.addHook("onResponse", async (request, reply) => {
    const { id, method, url } = request;
    const ms = Math.round(reply.elapsedTime);
    log.debug({ request_id: id, method, url, status: reply.statusCode, ms }, "request");
  });
}

/** How long requests under way have to finish. */
const CLOSING_PATIENCE_MS = 5000;

/**
 * A server that stops waits for its connections. Browsers and HTTP clients open some ahead, and for Node.js those are
 * not idle until their first request: they would hold the stop up for a minute.
 */
function closePromptly(api: Api): void {
  const sockets = new Set<Socket>();
  api.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  api.addHook("preClose", async () => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    setTimeout(() => api.server.closeAllConnections(), CLOSING_PATIENCE_MS).unref();
  });
}
