import { describe, expect, it } from "vitest";
import { parseSettings } from "../../src/settings/settings.ts";

const JWT = {
  JWT_ISSUER: "https://login.example",
  JWT_AUDIENCE: "vitrina",
  JWT_JWKS_URL: "https://login.example/jwks.json",
};
const REQUIRED = { API_AUTH: "required" };

const refusal = (environment: Record<string, string>): string => {
  try {
    parseSettings(environment, "/");
    return "accepted";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("settings of the API", () => {
  it("R8.5 without any, there is no login, and only this machine is listened to and answered for", () => {
    expect(parseSettings({}, "/").api).toEqual({
      host: "127.0.0.1",
      port: 8000,
      loginRequired: false,
      jwt: undefined,
      allowedHosts: ["localhost", "127.0.0.1", "[::1]"],
      trustedProxies: [],
      corsOrigins: [],
      requestsPerMinute: 0,
      failedLoginsPerMinute: 30,
      requestTimeoutMs: 30_000,
    });
  });

  it("with a login there is a limit, and any name is answered for unless they are listed", () => {
    expect(parseSettings({ ...REQUIRED, API_HOST: "0.0.0.0" }, "/").api).toMatchObject({
      host: "0.0.0.0",
      loginRequired: true,
      allowedHosts: undefined,
      requestsPerMinute: 600,
    });
  });

  it("read the login service and its roles", () => {
    const given = { ...REQUIRED, ...JWT, JWT_ROLE_CLAIM: "groups", JWT_ROLE_MAP: "etl-admins=admin, all = viewer" };
    expect(parseSettings(given, "/").api.jwt).toEqual({
      issuer: "https://login.example",
      audience: "vitrina",
      jwksUrl: "https://login.example/jwks.json",
      roleClaim: "groups",
      roleMap: new Map([
        ["etl-admins", "admin"],
        ["all", "viewer"],
      ]),
    });
  });

  it.each<[string, Record<string, string>]>([
    ["API_HOST is not a loopback address", { API_HOST: "0.0.0.0" }],
    ["API_HOST is not a loopback address", { API_HOST: "::" }],
    ["API_HOST is not a loopback address", { API_HOST: "etl.example", API_AUTH: "none" }],
    ["API_AUTH is not none or required", { API_AUTH: "yes" }],
    ["API_ALLOWED_HOSTS is set, but API_AUTH is not required", { API_ALLOWED_HOSTS: "evil.example" }],
    ["JWT_ISSUER is set, but API_AUTH is not required", JWT],
    ["JWT_AUDIENCE must be set beside JWT_ISSUER", { ...REQUIRED, JWT_ISSUER: "https://login.example" }],
    ["JWT_JWKS_URL must be set beside JWT_ISSUER", { ...REQUIRED, JWT_ISSUER: "https://login.example" }],
    ["JWT_ISSUER must be set beside JWT_ROLE_MAP", { ...REQUIRED, JWT_ROLE_MAP: "a=admin" }],
    ["JWT_JWKS_URL is not an https URL", { ...REQUIRED, ...JWT, JWT_JWKS_URL: "http://login.example/jwks.json" }],
    ["JWT_JWKS_URL is not an https URL", { ...REQUIRED, ...JWT, JWT_JWKS_URL: "https://a:b@login.example/" }],
    ["JWT_JWKS_URL is not an https URL", { ...REQUIRED, ...JWT, JWT_JWKS_URL: "file:///etc/passwd" }],
    ["JWT_ROLE_MAP is not a list such as", { ...REQUIRED, ...JWT, JWT_ROLE_MAP: "etl-admins=root" }],
    ["API_CORS_ORIGINS is not a list of origins", { API_CORS_ORIGINS: "*" }],
    ["API_CORS_ORIGINS is not a list of origins", { API_CORS_ORIGINS: "https://etl.example/" }],
    ["API_TRUSTED_PROXIES is not a list of addresses", { API_TRUSTED_PROXIES: "10.0.0.0/33" }],
    ["API_TRUSTED_PROXIES is not a list of addresses", { API_TRUSTED_PROXIES: "everybody" }],
    ["API_RATE_LIMIT_PER_MINUTE is not a whole number", { API_RATE_LIMIT_PER_MINUTE: "-1" }],
    ["API_REQUEST_TIMEOUT_SECONDS is not a whole number", { API_REQUEST_TIMEOUT_SECONDS: "0" }],
  ])("R8.5 are refused when access is not configured safely and wholly: %s (%j)", (message, environment) => {
    expect(refusal(environment)).toContain(message);
  });

  it("accept the keys of a login service on this machine without TLS", () => {
    for (const host of ["localhost:9000", "127.0.0.1", "[::1]:9000"]) {
      expect(refusal({ ...REQUIRED, ...JWT, JWT_JWKS_URL: `http://${host}/jwks.json` })).toBe("accepted");
    }
  });
});
