import rateLimit from "@fastify/rate-limit";
import type { FastifyReply, FastifyRequest } from "fastify";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { ApiSettings } from "../../settings/api-settings.ts";
import type { Api } from "../api.ts";

const WINDOW_MS = 60_000;
/** Several callers may share an address, behind a proxy or on one machine. */
const CALLERS_PER_ADDRESS = 5;

type Limit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

export interface RateLimits {
  /** Before anything is known of the caller. */
  byAddress: Limit;
  byCaller: Limit;
  /** Counts only logins that failed: who has a valid key is not locked out by a neighbour who has not. */
  byFailedLogin: Limit;
}

/** Counted in this process; several API processes count apart. */
export async function createRateLimits(api: Api, settings: ApiSettings): Promise<RateLimits> {
  await api.register(rateLimit, { global: false });
  const { requestsPerMinute, failedLoginsPerMinute } = settings;
  const tooMany = (): VitrinaError =>
    new VitrinaError("RATE_LIMITED", "There were too many requests within one minute.");
  const tooManyFailures = (): VitrinaError =>
    new VitrinaError("TOO_MANY_FAILED_LOGINS", "Too many logins from this address failed within one minute.");
  const byIp = (request: FastifyRequest): string => request.ip;
  return {
    byAddress: createLimit(api, requestsPerMinute * CALLERS_PER_ADDRESS, byIp, tooMany),
    byCaller: createLimit(api, requestsPerMinute, callerOf, tooMany),
    byFailedLogin: createLimit(api, failedLoginsPerMinute, byIp, tooManyFailures),
  };
}

function callerOf({ caller }: FastifyRequest): string {
  return caller?.keyId ?? caller?.name ?? "";
}

function createLimit(
  api: Api,
  max: number,
  keyGenerator: (request: FastifyRequest) => string,
  refusal: () => VitrinaError,
): Limit {
  if (max === 0) return async () => undefined;
  const count = api.createRateLimit({ max, timeWindow: WINDOW_MS, keyGenerator });
  return async (request, reply) => {
    const state = await count(request);
    if (state.isAllowed || !state.isExceeded) return;
    reply.header("retry-after", String(Math.max(1, state.ttlInSeconds)));
    throw refusal();
  };
}
