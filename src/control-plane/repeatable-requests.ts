import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { AnswerStore, KeyedRequest } from "../meta-store/ports/answers.ts";
import type { Log } from "../observability/log.ts";
import { actorOf } from "./actor.ts";
import type { Api } from "./api.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * False: the answer tells how things are now, so it is never kept for a repeated request. A function: what may be
     * kept of an answer that holds a secret.
     */
    keepAnswer?: boolean | ((answer: string) => string);
  }
}

const KEPT_HEADERS = ["content-type", "location", "etag"];
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * A POST with an Idempotency-Key happens once, however often it is sent: its answer is kept for 24 hours and given
 * again. Refused and failed requests are not kept; they changed nothing, and may be tried again with the same key.
 */
export function makeRequestsRepeatable(api: Api, answers: AnswerStore, log: Log): void {
  const begun = new WeakMap<FastifyRequest, KeyedRequest>();

  // After the check of the body: a request that is not valid never begins.
  api.addHook("preHandler", async (request, reply) => {
    const keyed = keyedRequest(request);
    if (keyed === undefined) return;
    const known = await answers.begin(keyed);
    switch (known.kind) {
      case "begun":
        begun.set(request, keyed);
        return;
      case "under_way":
        reply.header("retry-after", "1");
        throw new VitrinaError("IDEMPOTENCY_KEY_IN_USE", "A request with this Idempotency-Key has not ended yet.");
      case "other":
        throw new VitrinaError(
          "IDEMPOTENCY_KEY_REUSED",
          "This Idempotency-Key was used before, with another path, query or body.",
        );
      case "answered": {
        const { status, headers, body } = known.answer;
        reply.code(status).headers(headers).header("idempotency-replayed", "true");
        return reply.serializer(String).send(body);
      }
    }
  });

  api.addHook("onSend", async (request, reply, payload) => {
    const keyed = begun.get(request);
    if (keyed === undefined) return;
    begun.delete(request);
    try {
      const succeeded = reply.statusCode >= 200 && reply.statusCode < 300;
      if (!succeeded) await answers.forget(keyed);
      else
        await answers.keep(keyed, {
          status: reply.statusCode,
          headers: keptHeaders(reply),
          body: keptBody(request, String(payload ?? "")),
        });
    } catch (error) {
      // The request itself is done; only its answer cannot be given again.
      log.warn({ err: error, request_id: request.id }, "the answer was not kept");
    }
  });
}

function keyedRequest(request: FastifyRequest): KeyedRequest | undefined {
  const { method, headers, routeOptions, params, query, body } = request;
  const key = headers["idempotency-key"];
  const operation = (routeOptions.schema as { operationId?: string } | undefined)?.operationId;
  if (method !== "POST" || key === undefined || operation === undefined) return undefined;
  if (routeOptions.config.keepAnswer === false) return undefined;
  if (typeof key !== "string" || !KEY.test(key)) {
    throw new VitrinaError("INVALID_REQUEST", "An Idempotency-Key has 1 to 255 visible characters, without spaces.", {
      hint: "Send a fresh UUID with each new request.",
    });
  }
  const hash = createHash("sha256")
    .update(JSON.stringify([params, query, body ?? null]))
    .digest("hex");
  return { actor: actorOf(request).name, key, operation, hash };
}

function keptBody({ routeOptions: { config } }: FastifyRequest, body: string): string {
  return typeof config.keepAnswer === "function" ? config.keepAnswer(body) : body;
}

function keptHeaders(reply: FastifyReply): Record<string, string> {
  return Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => {
      const value = reply.getHeader(name);
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
}
