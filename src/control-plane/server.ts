import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { TargetAllowList } from "../domain/target.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { acceptJsonOnly, BODY_LIMIT_BYTES } from "./body-parser.ts";
import { handleError, handleUnknownPath } from "./error-handler.ts";
import { healthRoutes } from "./health/routes.ts";
import { hideFromDocumentation, registerDocumentation } from "./openapi.ts";
import { withOtherMethodsRefused } from "./other-methods.ts";
import { pipelineRoutes } from "./pipelines/routes.ts";
import { reconcileRoutes } from "./reconcile/routes.ts";
import { rejectRoutes } from "./rejects/routes.ts";
import { runRoutes } from "./runs/routes.ts";
import { validatorCompiler } from "./validation.ts";

export interface ApiParts {
  readonly store: MetaStore;
  readonly targets: TargetAllowList;
  readonly log: Log;
  readonly version: string;
}

/** A Fastify instance whose schemas are zod schemas. */
export type Api = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** The control-plane: reads and writes the meta-store, and nothing else. */
export async function buildServer(parts: ApiParts): Promise<Api> {
  const onError = handleError(parts.log);
  const api = Fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    genReqId: () => randomUUID(),
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: onError,
  }).withTypeProvider<ZodTypeProvider>() as Api;
  api.setErrorHandler(onError);
  api.setNotFoundHandler(handleUnknownPath);
  // Even before the body is looked at: whatever it is, nothing is there to take it.
  api.addHook("onRequest", async (request, reply) => (request.is404 ? handleUnknownPath(request, reply) : undefined));
  api.setValidatorCompiler(validatorCompiler);
  // Not checked again: a row that somebody wrote by hand must be shown, however odd, or nobody could mend it.
  api.setSerializerCompiler(() => (data) => JSON.stringify(data));
  acceptJsonOnly(api);
  logRequests(api, parts.log);

  await registerDocumentation(api, parts.version);
  await withOtherMethodsRefused(api, () => registerRoutes(api, parts));
  return api;
}

async function registerRoutes(api: Api, parts: ApiParts): Promise<void> {
  api.get("/", { schema: { hide: true } }, (_, reply) => reply.redirect("/docs"));
  // The same paths answer with and without the prefix; only the first are documented.
  for (const { prefix, documented } of [
    { prefix: "/api/v1", documented: true },
    { prefix: "", documented: false },
  ]) {
    await api.register(
      async (scope: Api) => {
        if (!documented) hideFromDocumentation(scope);
        pipelineRoutes(scope, parts);
        runRoutes(scope, parts);
        reconcileRoutes(scope, parts);
        rejectRoutes(scope, parts);
        healthRoutes(scope, parts);
        scope.get("/openapi.json", { schema: { hide: true } }, () => api.swagger());
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
