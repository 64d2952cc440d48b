import { isIP } from "node:net";
import { z } from "zod";
import { isRole, type Role } from "../domain/access.ts";
import { commaList } from "../domain/setting-fields.ts";

/** The settings of the API: where it listens, who may use it, and how much. */

const perMinute = z
  .string()
  .regex(/^\d{1,7}$/, "is not a whole number from 0 (no limit) to 9999999")
  .transform(Number);

export const apiFields = {
  API_HOST: z.string().default("127.0.0.1"),
  API_PORT: z
    .string()
    .regex(/^\d{1,5}$/, "is not a whole number from 0 to 65535")
    .transform(Number)
    .refine((port) => port <= 65_535, "is not between 0 and 65535")
    .default(8000),
  API_AUTH: z.enum(["none", "required"], "is not none or required").default("none"),
  API_ALLOWED_HOSTS: commaList.optional(),
  API_TRUSTED_PROXIES: commaList
    .refine((items) => items.every(isAddressOrNet), "is not a list of addresses or networks such as 10.0.0.0/8")
    .default([]),
  API_CORS_ORIGINS: commaList
    .refine((items) => items.every(isOrigin), "is not a list of origins such as https://etl.example.com")
    .default([]),
  API_RATE_LIMIT_PER_MINUTE: perMinute.optional(),
  API_FAILED_LOGINS_PER_MINUTE: perMinute.default(30),
  API_REQUEST_TIMEOUT_SECONDS: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, "is not a whole number from 1 to 999")
    .transform(Number)
    .default(30),
  JWT_ISSUER: z.string().optional(),
  JWT_AUDIENCE: z.string().optional(),
  JWT_JWKS_URL: z.string().refine(isSafeUrl, "is not an https URL (http is accepted for this machine only)").optional(),
  JWT_ROLE_CLAIM: z.string().default("roles"),
  JWT_ROLE_MAP: commaList
    .transform((items) => items.map((item) => item.split("=").map((side) => side.trim())))
    .refine(
      (pairs) => pairs.every((pair) => pair.length === 2 && pair[0] !== "" && isRole(pair[1] ?? "")),
      "is not a list such as etl-admins=admin,etl-readers=viewer",
    )
    .transform((pairs) => new Map(pairs as [string, Role][]))
    .optional(),
};

type ApiEnvironment = z.infer<z.ZodObject<typeof apiFields>>;

export interface JwtSettings {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string;
  /** Name of the claim, or a dotted path into nested claims. */
  readonly roleClaim: string;
  /** Maps values of the claim to roles; without it the values are role names. */
  readonly roleMap: ReadonlyMap<string, Role> | undefined;
}

export interface ApiSettings {
  readonly host: string;
  readonly port: number;
  readonly loginRequired: boolean;
  readonly jwt: JwtSettings | undefined;
  /** Host names a request may be addressed to; `undefined`: any. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Their X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  /** 0: no limit. */
  readonly requestsPerMinute: number;
  readonly failedLoginsPerMinute: number;
  readonly requestTimeoutMs: number;
}

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];
const DEFAULT_REQUESTS_PER_MINUTE = 600;

export function apiSettings(env: ApiEnvironment): ApiSettings {
  const loginRequired = env.API_AUTH === "required";
  const { JWT_ISSUER: issuer, JWT_AUDIENCE: audience, JWT_JWKS_URL: jwksUrl } = env;
  const hasJwt = issuer !== undefined && audience !== undefined && jwksUrl !== undefined;
  return {
    host: env.API_HOST,
    port: env.API_PORT,
    loginRequired,
    jwt: hasJwt ? { issuer, audience, jwksUrl, roleClaim: env.JWT_ROLE_CLAIM, roleMap: env.JWT_ROLE_MAP } : undefined,
    // Without a login, a web page that points its own name at this machine must not reach the API.
    allowedHosts: env.API_ALLOWED_HOSTS ?? (loginRequired ? undefined : LOOPBACK_NAMES),
    trustedProxies: env.API_TRUSTED_PROXIES,
    corsOrigins: env.API_CORS_ORIGINS,
    // Without a login there is only the user of this machine, who needs no limit.
    requestsPerMinute: env.API_RATE_LIMIT_PER_MINUTE ?? (loginRequired ? DEFAULT_REQUESTS_PER_MINUTE : 0),
    failedLoginsPerMinute: env.API_FAILED_LOGINS_PER_MINUTE,
    requestTimeoutMs: env.API_REQUEST_TIMEOUT_SECONDS * 1000,
  };
}

/** Mistakes in combinations of settings. Access that is only half configured is refused, never guessed. */
export function apiMistakes(environment: Readonly<Record<string, string | undefined>>): string[] {
  const given = (name: string): boolean => environment[name] !== undefined;
  const jwtNames = ["JWT_ISSUER", "JWT_AUDIENCE", "JWT_JWKS_URL"];
  const someJwt = Object.keys(environment).filter((name) => name.startsWith("JWT_") && given(name));
  const loginRequired = environment["API_AUTH"] === "required";
  const mistakes: string[] = [];
  if (!loginRequired && !isLoopback(environment["API_HOST"] ?? "127.0.0.1")) {
    mistakes.push(
      "API_HOST is not a loopback address; without authentication the API listens only on this machine, so set API_AUTH=required",
    );
  }
  if (!loginRequired && given("API_ALLOWED_HOSTS")) {
    mistakes.push("API_ALLOWED_HOSTS is set, but API_AUTH is not required; without a login only loopback names pass");
  }
  const first = someJwt[0];
  if (first === undefined) return mistakes;
  if (!loginRequired) mistakes.push(`${first} is set, but API_AUTH is not required; set API_AUTH=required`);
  for (const name of jwtNames.filter((name) => !given(name))) mistakes.push(`${name} must be set beside ${first}`);
  return mistakes;
}

function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  return isIP(host) === 4 ? host.startsWith("127.") : host === "::1";
}

function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") return false;
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname.replace(/^\[(.*)\]$/, "$1")));
}

/** Written as browsers write it, so that it can be compared as text. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function isAddressOrNet(text: string): boolean {
  const [address, bits, ...rest] = text.split("/");
  const family = isIP(address ?? "");
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}
