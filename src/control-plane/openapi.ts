import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import { pipelineSchema } from "../domain/pipeline.ts";
import { reconcileSchema } from "../domain/reconcile.ts";
import { runSchema } from "../domain/run.ts";
import { problemSchema } from "./problem.ts";
import type { Api } from "./server.ts";

const COMPONENTS = { Pipeline: pipelineSchema, Run: runSchema, Reconcile: reconcileSchema, Problem: problemSchema };
for (const [id, schema] of Object.entries(COMPONENTS)) {
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
}

/** The page works without the Internet, and a browser is told to fetch nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

/** The documentation is derived from the routes' schemas. Register it before the routes. */
export async function registerDocumentation(api: Api, version: string): Promise<void> {
  await api.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Vitrina",
        description: "Builds data marts from PostgreSQL. This API holds the pipelines; runners execute them.",
        version,
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      tags: [
        { name: "pipelines", description: "Configure pipelines, run and pause them." },
        { name: "runs", description: "What runs did." },
        { name: "rejects", description: "Rows that a target refused." },
        { name: "reconcile", description: "Compare source and target." },
        { name: "health", description: "For probes." },
      ],
    },
    transform: jsonSchemaTransform,
    transformObject: withComponents,
  });
  await api.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: "Vitrina API" },
  });
}

/** Each component comes twice, as read and as written; ours are only ever read. */
const withComponents: typeof jsonSchemaTransformObject = (document) => {
  const { components, ...rest } = jsonSchemaTransformObject(document) as { components: { schemas: object } };
  const read = Object.entries(components.schemas).filter(([name]) => name in COMPONENTS);
  return { ...rest, components: { ...components, schemas: Object.fromEntries(read) } };
};

/** For routes that answer, but need not be documented twice. */
export function hideFromDocumentation(api: Api): void {
  api.addHook("onRoute", (route) => {
    route.schema = { ...route.schema, hide: true };
  });
}

/** A successful answer, for the documentation of an operation. */
export function answer<T extends z.ZodType>(description: string, schema: T) {
  return { description, content: { "application/json": { schema } } };
}
