import type { FastifyRequest, FastifySchema } from "fastify";
import { mayActAs, type Role } from "../../domain/access.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { ACCESS } from "../access-table.ts";
import type { Api } from "../api.ts";
import { problems } from "../problem.ts";

type Access = Role | "anyone";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Set by a route that is not an operation; for an operation it comes from the access table. */
    access?: Access;
    operationId?: string;
    successStatus?: number;
  }
}

/** The pages of the documentation are registered by a plugin, and say no more than the source code does. */
const DOCUMENTATION = /^\/docs(?:\/|$)/;

/**
 * Deny by default: a route that neither is an operation of the access table nor says that anyone may ask it cannot be
 * registered, so the API does not start. Register this before any route.
 */
export function requireAccessOfEveryRoute(api: Api): void {
  api.addHook("onRoute", (route) => {
    const schema = route.schema as { operationId?: string; response?: object } | undefined;
    const operationId = schema?.operationId;
    const access = operationId === undefined ? accessOfOther(route) : ACCESS[operationId];
    if (access === undefined) {
      throw new Error(`${route.method} ${route.url} (${operationId ?? "no operationId"}) is not in the access table.`);
    }
    const successStatus = Object.keys(schema?.response ?? {}).find((status) => status.startsWith("2"));
    route.config = {
      ...route.config,
      access,
      ...(operationId !== undefined && { operationId }),
      ...(successStatus !== undefined && { successStatus: Number(successStatus) }),
    };
  });
}

function accessOfOther({ url, config }: { url: string; config?: { access?: Access } }): Access | undefined {
  return DOCUMENTATION.test(url) ? "anyone" : config?.access;
}

export function requireRole({ caller }: FastifyRequest, needed: Role | undefined): void {
  // A route without access cannot be registered; if one slipped through, nobody may use it.
  if (needed === undefined) throw new VitrinaError("ROLE_TOO_LOW", "Nobody may do this.");
  if (caller?.role !== undefined && mayActAs(caller.role, needed)) return;
  const held = caller?.role === undefined ? "your token names no role that is known here" : `you are ${caller.role}`;
  throw new VitrinaError("ROLE_TOO_LOW", `This needs the role ${needed}; ${held}.`, {
    extra: { role_needed: needed, role_held: caller?.role ?? null },
  });
}

/** Adds to the documentation of an operation what the guard may answer, and the role that it asks for. */
export function describeAccess<T extends FastifySchema>(schema: T): T {
  const { operationId, description, response } = schema as {
    operationId?: string;
    description?: string;
    response?: object;
  };
  const access = operationId === undefined ? undefined : ACCESS[operationId];
  if (access === undefined) return schema;
  if (access === "anyone") return { ...schema, security: [], response: { ...response, ...problems(429) } };
  return {
    ...schema,
    description: [description, `Needs the role ${access}.`].filter(Boolean).join(" "),
    security: [{ bearer: [] }],
    response: { ...response, ...problems(401, 403, 429) },
    "x-required-role": access,
  };
}
