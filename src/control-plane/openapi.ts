import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Inspector } from "../connectors/inspector.ts";
import type { Targets } from "../connectors/targets.ts";
import { pipelineSchema } from "../domain/pipeline.ts";
import { reconcileSchema } from "../domain/reconcile.ts";
import { runSchema } from "../domain/run.ts";
import type { Api, ApiParts } from "./api.ts";
import { describeAccess } from "./auth/route-access.ts";
import { problemSchema } from "./problem.ts";

const COMPONENTS = { Pipeline: pipelineSchema, Run: runSchema, Reconcile: reconcileSchema, Problem: problemSchema };
for (const [id, schema] of Object.entries(COMPONENTS)) {
  z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
}

/** The page works without the Internet, and a browser is told to fetch nothing from elsewhere. */
const CONTENT_SECURITY_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

/** The documentation is derived from the routes' schemas. Register it before the routes. */
export async function registerDocumentation(api: Api, { version, targets, inspector }: ApiParts): Promise<void> {
  await api.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Vitrina",
        description: "Builds data marts from PostgreSQL. This API holds the pipelines; runners execute them.",
        version,
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer", description: "A key of Vitrina, or a token of the login service." },
        },
      },
      tags: [
        { name: "pipelines", description: "Configure pipelines, run and pause them." },
        { name: "trying out", description: "Find out what a configuration would do, without doing it." },
        { name: "follow", description: "Marts that follow every change of their source." },
        { name: "runs", description: "What runs did." },
        { name: "events", description: "What changes, as it changes." },
        { name: "versions", description: "What pipelines were configured like before." },
        { name: "tasks", description: "Task plans, and the code tasks of the runners." },
        { name: "runners", description: "Who executes the pipelines." },
        { name: "access", description: "Keys, and who did what." },
        { name: "rejects", description: "Rows that a target refused." },
        { name: "reconcile", description: "Compare source and target." },
        { name: "health", description: "For probes." },
      ],
    },
    transform: ({ schema, ...rest }) => jsonSchemaTransform({ schema: describeAccess(schema), ...rest }),
    transformObject: (document) => withConnectors(withComponents(document), targets, inspector),
  });
  await api.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: "Vitrina API" },
  });
}

interface Described {
  readonly paths: Record<string, Record<string, { requestBody?: { required?: boolean; content: object } }>>;
  readonly components: { readonly schemas: object };
}

/** Each component comes twice, as read and as written; ours are only ever read. */
const withComponents: typeof jsonSchemaTransformObject = (document) => {
  const { components, ...rest } = jsonSchemaTransformObject(document) as unknown as Described;
  const read = Object.entries(components.schemas).filter(([name]) => name in COMPONENTS);
  markOptionalBodies(rest);
  return { ...rest, components: { ...components, schemas: Object.fromEntries(read) } } as never;
};

/** The schemas of the domain know neither the types of sources nor the options of targets; the connectors do. */
function withConnectors<T>(document: T, targets: Targets, { sourceTypes }: Inspector): T {
  const options = targets.optionsSchema();
  return JSON.parse(JSON.stringify(document), (name, schema) => {
    if (name !== "source_type" && name !== "target_options") return schema;
    const { pattern: _form, propertyNames: _any, ...rest } = schema;
    return name === "source_type" ? { ...rest, enum: sourceTypes } : { ...rest, ...options };
  });
}

/** A body that may be null may be left out; the plugin calls every body required. */
function markOptionalBodies({ paths }: Pick<Described, "paths">): void {
  for (const { requestBody } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const schema = Object.values(requestBody?.content ?? {})[0]?.schema as { anyOf?: { type?: string }[] } | undefined;
    if (requestBody && schema?.anyOf?.some(({ type }) => type === "null")) requestBody.required = false;
  }
}

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
