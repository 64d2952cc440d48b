import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Api } from "./api.ts";
import { pathOf } from "./problem.ts";

/**
 * The router answers 404 where a path exists but not with that method. To answer 405 and name the methods, every path
 * registered by `register` also gets a route for the methods it lacks.
 */
export async function withOtherMethodsRefused(api: Api, register: () => Promise<void>): Promise<void> {
  const methodsOf = new Map<string, Set<string>>();
  let collecting = true;
  api.addHook("onRoute", ({ url, method }) => {
    if (!collecting) return;
    methodsOf.set(url, new Set([...(methodsOf.get(url) ?? []), ...[method].flat()]));
  });
  await register();
  collecting = false;
  for (const [url, methods] of methodsOf) refuseOtherMethods(api, url, methods);
}

function refuseOtherMethods(api: Api, url: string, methods: ReadonlySet<string>): void {
  const allow = [...methods].sort().join(", ");
  api.route({
    url,
    method: api.supportedMethods.filter((method) => !methods.has(method)),
    schema: { hide: true },
    config: { access: "anyone" },
    // Before the body is looked at: whatever it is, the method is wrong.
    onRequest: async (request, reply) => {
      reply.header("allow", allow);
      throw new VitrinaError("METHOD_NOT_ALLOWED", `${pathOf(request)} has no ${request.method}, only ${allow}.`);
    },
    handler: () => undefined,
  });
}
