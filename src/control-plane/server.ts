import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import Fastify, { type FastifyInstance } from "fastify";
import {
  jsonSchemaTransform,
  serializerCompiler,
  validatorCompiler,
  type ZodTypeProvider,
} from "fastify-type-provider-zod";
import type { TargetAllowList } from "../domain/target.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";
import { handleError, handleUnknownRoute } from "./error-handler.ts";
import { healthRoutes } from "./health/routes.ts";
import { pipelineRoutes } from "./pipelines/routes.ts";
import { runRoutes } from "./runs/routes.ts";

export interface ApiParts {
  readonly store: MetaStore;
  readonly targets: TargetAllowList;
  readonly log: Log;
  readonly version: string;
}

/** A Fastify instance whose schemas are zod schemas. */
export type Api = FastifyInstance<
  import("fastify").RawServerDefault,
  import("node:http").IncomingMessage,
  import("node:http").ServerResponse,
  import("fastify").FastifyBaseLogger,
  ZodTypeProvider
>;

const BODY_LIMIT = 256 * 1024;

/** The control-plane: reads and writes the meta-store, and nothing else. */
export async function buildServer(parts: ApiParts): Promise<Api> {
  const api = Fastify({
    bodyLimit: BODY_LIMIT,
    routerOptions: { ignoreTrailingSlash: true },
  }).withTypeProvider<ZodTypeProvider>() as Api;
  api.setValidatorCompiler(validatorCompiler);
  api.setSerializerCompiler(serializerCompiler);
  api.setErrorHandler(handleError(parts.log));
  api.setNotFoundHandler(handleUnknownRoute);
  api.addHook("onResponse", async (request, reply) => {
    parts.log.debug(
      { method: request.method, url: request.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
      "request",
    );
  });

  await api.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Vitrina",
        description: "Builds data marts from PostgreSQL. This API holds the pipelines; runners execute them.",
        version: parts.version,
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      tags: [
        { name: "pipelines", description: "Configure pipelines, run and pause them." },
        { name: "runs", description: "What runs did." },
        { name: "health", description: "For probes." },
      ],
    },
    transform: jsonSchemaTransform,
  });
  await api.register(swaggerUi, { routePrefix: "/docs" });
  api.get("/openapi.json", { schema: { hide: true } }, () => api.swagger());
  api.get("/", { schema: { hide: true } }, (_, reply) => reply.redirect("/docs"));

  await api.register(healthRoutes(parts));
  // The same paths answer with and without the prefix; only the first are documented.
  for (const { prefix, hide } of [
    { prefix: "/api/v1", hide: false },
    { prefix: "", hide: true },
  ]) {
    await api.register(pipelineRoutes(parts, hide), { prefix });
    await api.register(runRoutes(parts, hide), { prefix });
  }
  return api;
}
