import type { FastifyRequest } from "fastify";
import type { AuditedAttempt, AuditOrigin } from "../../domain/audit.ts";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import type { AuditLog } from "../../meta-store/ports/access.ts";
import { type Log, redact } from "../../observability/log.ts";
import type { Api, ApiParts } from "../api.ts";

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
  const attempts = new BoundedAttempts(store.audit, log);
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

const ATTEMPTS_WINDOW_MS = 60_000;
const MOST_ATTEMPTS_PER_WINDOW = 100;

/**
 * Writes attempts into the audit log, but at most so many in a minute: whoever knocks all day must not fill the disk.
 * The rest is counted, and one entry tells the number. Those whom a login has named are counted apart from strangers,
 * so that noise from outside hides nothing of theirs.
 */
class BoundedAttempts {
  readonly #audit: AuditLog;
  readonly #log: Log;
  readonly #windows = new Map<string, { written: number; untold: number; timer: NodeJS.Timeout }>();
  readonly #writing = new Set<Promise<void>>();

  constructor(audit: AuditLog, log: Log) {
    this.#audit = audit;
    this.#log = log;
  }

  add(attempt: AuditedAttempt, who: "known" | "stranger"): void {
    const window = this.#windows.get(who) ?? this.#open(who);
    if (window.written >= MOST_ATTEMPTS_PER_WINDOW) {
      window.untold += 1;
      return;
    }
    window.written += 1;
    this.#write(attempt);
  }

  #open(who: string) {
    const timer = setTimeout(() => this.#close(who), ATTEMPTS_WINDOW_MS).unref();
    const window = { written: 0, untold: 0, timer };
    this.#windows.set(who, window);
    return window;
  }

  #close(who: string): void {
    const window = this.#windows.get(who);
    this.#windows.delete(who);
    clearTimeout(window?.timer);
    if (window === undefined || window.untold === 0) return;
    const nothing = { role: null, key_id: null, ip: null, object: null, http_status: null, request_id: null };
    const details = { attempts: window.untold, by: who };
    this.#write({ ...nothing, actor: "unknown", action: "manyAttempts", outcome: "denied", details });
  }

  #write(attempt: AuditedAttempt): void {
    const writing = this.#audit
      .recordAttempt(attempt)
      .catch((err: unknown) => this.#log.error({ err, action: attempt.action }, "attempt not in the audit log"))
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Writes the count of attempts not recorded one by one, and waits until everything is written. */
  async end(): Promise<void> {
    for (const who of [...this.#windows.keys()]) this.#close(who);
    await Promise.all(this.#writing);
  }
}
