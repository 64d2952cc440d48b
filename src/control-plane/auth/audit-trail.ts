import type { FastifyRequest } from "fastify";
import type { AuditOrigin } from "../../domain/audit.ts";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import { redact } from "../../observability/log.ts";
import type { Api, ApiParts } from "../api.ts";
import { BoundedAttempts } from "./bounded-attempts.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The code of the problem that was answered. */
    refusal: string | undefined;
  }
}

const DENIALS: ReadonlySet<string> = new Set<ErrorCode>([
  "UNAUTHENTICATED",
  "ROLE_TOO_LOW",
  "TOO_MANY_FAILED_LOGINS",
  "HOST_NOT_ALLOWED",
  "ORIGIN_NOT_ALLOWED",
]);

const READING_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Changes are recorded by the meta-store, in their own transactions, whatever a handler calls; this only says on whose
 * behalf. What changed nothing is written after the answer: a crash in between loses the entry, but no change.
 */
export function keepAuditTrail(api: Api, { store, log }: ApiParts): void {
  const attempts = new BoundedAttempts(store, log);
  api.decorateRequest("refusal", undefined);

  // With a callback, because what follows must run inside: everything up to the end of the handler.
  api.addHook("preHandler", (request, _reply, done) => {
    if (READING_METHODS.includes(request.method) || request.caller === undefined) return done();
    store.audit.recording(originOf(request, request.routeOptions.config.successStatus ?? 200), done);
  });

  api.addHook("onResponse", async (request, { statusCode }) => {
    const code = request.refusal;
    if (code === undefined) return;
    const isDenied = DENIALS.has(code);
    const changes = !READING_METHODS.includes(request.method) && request.caller !== undefined;
    if (!isDenied && !changes) return;
    const outcome = isDenied ? "denied" : "refused";
    const who = request.caller === undefined ? "stranger" : "known";
    attempts.add({ ...originOf(request, statusCode), outcome, details: { code } }, who);
  });

  api.addHook("onClose", () => attempts.end());
}

function originOf(request: FastifyRequest, httpStatus: number): AuditOrigin {
  const { caller, ip, id, params, routeOptions } = request;
  return {
    actor: caller?.name ?? "unknown",
    role: caller?.role ?? null,
    key_id: caller?.keyId ?? null,
    ip,
    action: routeOptions.config?.operationId ?? "none",
    object: objectIn(params),
    http_status: httpStatus,
    request_id: id,
  };
}

/** What the path names, until the meta-store knows better. Somebody may have put a key where an id belongs. */
function objectIn(params: unknown): string | null {
  const { id } = (params ?? {}) as { id?: string };
  return id === undefined ? null : redact(id).replaceAll("\0", "");
}
