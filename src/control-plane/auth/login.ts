import type { FastifyRequest } from "fastify";
import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, type JWTPayload, jwtVerify } from "jose";
import { highestRole, isRole, type Role } from "../../domain/access.ts";
import { isSecretOf, KEY_PREFIX, parseKey } from "../../domain/api-key.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { KeyStore } from "../../meta-store/ports/access.ts";
import type { Log } from "../../observability/log.ts";
import type { JwtSettings } from "../../settings/api-settings.ts";
import { type Caller, LOCAL } from "../actor.ts";
import type { ApiParts } from "../api.ts";

const BEARER = /^Bearer +(?<token>[\w.~+/=-]+)$/i;

export type LogIn = (request: FastifyRequest) => Promise<Caller>;

/** Finds out who sends a request, by the header Authorization. */
export function createLogIn({ store, log, api: settings }: ApiParts): LogIn {
  if (!settings.loginRequired) return async () => LOCAL;
  const logInWithToken = settings.jwt && createJwtLogin(settings.jwt);
  return async ({ headers: { authorization } }) => {
    if (authorization === undefined) throw new VitrinaError("UNAUTHENTICATED", "This operation needs a login.");
    const token = BEARER.exec(authorization)?.groups?.["token"];
    if (token === undefined) throw badLogin("The header authorization is not of the form: Bearer <key>.");
    if (token.startsWith(KEY_PREFIX)) return logInWithKey(token, store.keys, log);
    if (logInWithToken === undefined) throw badLogin("The key is not known.");
    return logInWithToken(token);
  };
}

/** Asks the meta-store at each request, so that a revoked key is refused from the next request on. */
async function logInWithKey(text: string, keys: KeyStore, log: Log): Promise<Caller> {
  const given = parseKey(text);
  const found = given && (await keys.find(given.id));
  if (given === undefined || found === undefined || !isSecretOf(found.secretHash, given.secret)) {
    throw badLogin("The key is not known.");
  }
  // From here on the caller has proven to have the secret, and may learn the state of the key.
  if (found.revoked) throw badLogin("The key was revoked.");
  if (found.expired) throw badLogin("The key has expired.");
  if (!found.useNoted) await noteUse(given.id, keys, log);
  return { name: `key:${found.name}`, role: found.role, keyId: given.id };
}

/** Nobody is locked out because the use of a key could not be recorded. */
async function noteUse(id: string, keys: KeyStore, log: Log): Promise<void> {
  await keys.markUsed(id).catch((err: unknown) => log.warn({ err, key_id: id }, "use of a key not noted"));
}

/** Signatures with a key pair only: with HS256 the public key of the login service could be taken for a secret. */
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const CLOCK_LEEWAY_SECONDS = 60;
const KEYS_KEPT_MS = 10 * 60_000;
/** Tokens may name any key id they like; the keys are not fetched again more often than this. */
const KEYS_REFETCH_MS = 30_000;
const KEYS_RETRY_MS = 5000;
const KEYS_FETCH_TIMEOUT_MS = 5000;
const LONGEST_NAME = 200;

type JwtLogin = (token: string) => Promise<Caller>;

/** The keys come from the configured address alone; what a token says about keys elsewhere (jku, x5u) is ignored. */
function createJwtLogin(settings: JwtSettings): JwtLogin {
  const keys = createRemoteJWKSet(new URL(settings.jwksUrl), {
    cacheMaxAge: KEYS_KEPT_MS,
    cooldownDuration: KEYS_REFETCH_MS,
    timeoutDuration: KEYS_FETCH_TIMEOUT_MS,
    [customFetch]: withPauseAfterFailure(),
  });
  return async (token) => {
    const { issuer, audience } = settings;
    const options = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_LEEWAY_SECONDS };
    try {
      const { payload } = await jwtVerify(token, keys, { ...options, requiredClaims: ["exp", "sub"] });
      return { name: `jwt:${readable(payload.sub ?? "")}`, role: roleOf(payload, settings), keyId: null };
    } catch (error) {
      throw loginError(error);
    }
  };
}

/** The library waits between fetches that succeed, but not after one that failed. */
function withPauseAfterFailure(): FetchImplementation {
  let failedAt = Number.NEGATIVE_INFINITY;
  return async (url, options) => {
    if (performance.now() - failedAt < KEYS_RETRY_MS)
      throw new TypeError("The keys could not be fetched a moment ago.");
    try {
      const response = await fetch(url, options);
      if (response.status !== 200) failedAt = performance.now();
      return response;
    } catch (error) {
      failedAt = performance.now();
      throw error;
    }
  };
}

/** A bad token is the caller's fault; keys that cannot be fetched are not, and the token may be good. */
function loginError(error: unknown): VitrinaError {
  if (error instanceof errors.JWTExpired) return badLogin("The token has expired.", error);
  if (error instanceof errors.JWTClaimValidationFailed) {
    return badLogin(`The token's claim "${error.claim}" is not valid here.`, error);
  }
  if (TOKEN_FAULTS.some((fault) => error instanceof fault)) return badLogin("The token is not valid.", error);
  return new VitrinaError("LOGIN_UNAVAILABLE", "The keys of the login service cannot be fetched at the moment.", {
    cause: error,
  });
}

const TOKEN_FAULTS = [
  errors.JWTInvalid,
  errors.JWSInvalid,
  errors.JWSSignatureVerificationFailed,
  errors.JOSEAlgNotAllowed,
  errors.JOSENotSupported,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
];

function roleOf(payload: JWTPayload, { roleClaim, roleMap }: JwtSettings): Role | undefined {
  const values = [claimAt(payload, roleClaim)].flat().filter((value) => typeof value === "string");
  const roles = roleMap === undefined ? values.filter(isRole) : values.map((value) => roleMap.get(value));
  return highestRole(roles.filter((role) => role !== undefined));
}

function claimAt(payload: JWTPayload, claim: string): unknown {
  if (Object.hasOwn(payload, claim)) return payload[claim];
  let at: unknown = payload;
  for (const step of claim.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<string, unknown>)[step];
  }
  return at;
}

/** The name ends up in the log and in the audit log. */
function readable(subject: string): string {
  return subject.replace(/\p{C}/gu, "?").slice(0, LONGEST_NAME);
}

/** Something was sent, but it is not a valid login; many of these in a minute look like guessing. */
export class BadLogin extends VitrinaError {}

function badLogin(message: string, cause?: unknown): BadLogin {
  return new BadLogin("UNAUTHENTICATED", message, { cause });
}
