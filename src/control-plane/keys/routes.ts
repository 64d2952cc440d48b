import { z } from "zod";
import { apiKeySchema, newKeySchema } from "../../domain/api-key.ts";
import { actorOf } from "../actor.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { pageOf, pageQuery } from "../parameters.ts";
import { problems } from "../problem.ts";
import { invalidRequest } from "../validation.ts";

const tags = ["access"];
const createdKeySchema = apiKeySchema.extend({
  key: z.string().nullable().describe("Shown only this once: null when the same request is repeated."),
});

const operations = {
  createKey: {
    tags,
    operationId: "createKey",
    summary: "Make a key",
    description:
      "The answer has the key itself, which cannot be read again later. Repeated with the same Idempotency-Key the request makes no second key, and answers without it: when the first answer was lost, revoke that key and make another.",
    body: newKeySchema,
    response: { 201: answer("The new key.", createdKeySchema), ...problems(400, 413, 415, 422) },
  },
  listKeys: {
    tags,
    operationId: "listKeys",
    summary: "List keys, newest first",
    description: "Also those that have expired or were revoked. Their secrets are not kept.",
    querystring: pageQuery,
    response: { 200: answer("A page of keys.", pageOf(apiKeySchema)), ...problems(422) },
  },
  revokeKey: {
    tags,
    operationId: "revokeKey",
    summary: "Revoke a key",
    description: "It is refused from the next request on. Revoking it twice is the same as once.",
    params: z.object({ id: z.string().min(1).describe("The id of the key.") }),
    response: { 204: z.undefined().describe("It is revoked."), ...problems(404) },
  },
};

export function keyRoutes(api: Api, { store }: ApiParts): void {
  api.get("/keys", { schema: operations.listKeys }, ({ query }) => store.keys.list(query));

  const withoutKey = (body: string): string => JSON.stringify({ ...JSON.parse(body), key: null });
  api.post("/keys", { schema: operations.createKey, config: { keepAnswer: withoutKey } }, async (request, reply) => {
    const { expires_at } = request.body;
    if (expires_at !== undefined && new Date(expires_at) <= new Date()) {
      throw invalidRequest("body", [{ pointer: "/expires_at", message: "It must lie in the future." }]);
    }
    const created = await store.keys.create(request.body, actorOf(request).name);
    // A key must not lie in a cache between here and the caller.
    return reply.code(201).header("cache-control", "no-store").send(created);
  });

  api.delete("/keys/:id", { schema: operations.revokeKey }, async ({ params }, reply) => {
    await store.keys.revoke(params.id);
    return reply.code(204).send();
  });
}
