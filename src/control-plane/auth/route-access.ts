import type { Role } from "../../domain/access.ts";
import { ACCESS } from "../access-table.ts";
import type { Api } from "../api.ts";

type Access = Role | "anyone";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Given by a route that is no operation; of an operation it comes from the access table. */
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
