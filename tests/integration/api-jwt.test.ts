import { createHmac } from "node:crypto";
import { generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, bearer, expectProblem, startTestApi, type TestApi } from "../support/api-client.ts";
import { LOGIN_REQUIRED } from "../support/callers.ts";
import { AUDIENCE, type LoginService, startLoginService } from "../support/login-service.ts";

/** Seconds from now, as tokens count time. */
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

let service: LoginService;
let api: TestApi;
async function open(): Promise<void> {
  service = await startLoginService();
  api = await start();
}
async function close(): Promise<void> {
  await api.stop();
  await service.stop();
}

const start = (more: Record<string, string> = {}): Promise<TestApi> =>
  startTestApi({ ...LOGIN_REQUIRED, ...service.settings, ...more });

async function restart(more: Record<string, string>): Promise<void> {
  await api.stop();
  api = await start(more);
}

const claims = (more: JWTPayload = {}): JWTPayload => ({
  iss: service.issuer,
  aud: AUDIENCE,
  sub: "ann",
  exp: inSeconds(600),
  roles: ["viewer"],
  ...more,
});

const ask = (token: string, init: RequestInit = {}): Promise<Answer> =>
  api.send("/pipelines", { ...init, headers: bearer(token) });

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("R8.5 a token of the login service", () => {
  beforeAll(open);
  afterAll(close);

  it.each(["RS256", "ES256", "EdDSA"] as const)("is accepted when it is signed with %s", async (algorithm) => {
    expect(await ask(await service.sign(claims(), { algorithm }))).toMatchObject({ status: 200 });
  });

  it("gives the highest role that it names, and its subject is the author", async () => {
    const token = await service.sign(claims({ roles: ["viewer", "editor", "something"] }));
    const body = JSON.stringify({ name: "p", source_query: "SELECT 1 AS id", target_table: "analytics.p" });
    const headers = { ...bearer(token), "content-type": "application/json" };
    expect(await api.send("/pipelines", { method: "POST", headers, body })).toMatchObject({ status: 201 });
    expect(await api.database.query("SELECT author FROM etl.etl_pipeline_versions")).toEqual([{ author: "jwt:ann" }]);
    expectProblem(await api.send("/keys", { headers }), "ROLE_TOO_LOW");
  });

  it.each<[string, JWTPayload]>([
    ["none", { roles: undefined }],
    ["only unknown ones", { roles: ["root", "Admin", "__proto__"] }],
    ["something else than a text", { roles: [{ admin: true }, 5] }],
  ])("is refused with 403 when it names %s", async (_, more) => {
    const answer = await ask(await service.sign(claims(more)));
    expectProblem(answer, "ROLE_TOO_LOW");
    expect(answer.body.detail).toBe("This needs the role viewer; your token names no role that is known here.");
  });

  it("may carry its roles elsewhere, under names of its own", async () => {
    // The last one here: the others want the usual settings.
    await restart({ JWT_ROLE_CLAIM: "realm_access.roles", JWT_ROLE_MAP: "etl-admins=admin,etl-readers=viewer" });
    const withRoles = (roles: unknown) => service.sign(claims({ roles: ["admin"], realm_access: { roles } }));
    const listKeys = async (roles: unknown) => api.send("/keys", { headers: bearer(await withRoles(roles)) });
    expect(await listKeys(["etl-readers", "etl-admins"])).toMatchObject({ status: 200 });
    expect(await listKeys("etl-admins")).toMatchObject({ status: 200 });
    expectProblem(await listKeys(["etl-readers"]), "ROLE_TOO_LOW");
    // With a map, a group that happens to be called admin is only a group.
    expectProblem(await listKeys(["admin"]), "ROLE_TOO_LOW");
  });
});

describe("R8.5 a forged or unfit token gets 401", () => {
  beforeAll(open);
  afterAll(close);

  const attacks: Record<string, () => Promise<string> | string> = {
    "alg none": () => `${part({ alg: "none" })}.${part(claims({ roles: ["admin"] }))}.`,
    "alg none with a kid": () => `${part({ alg: "none", kid: "RS256" })}.${part(claims())}.`,
    "HS256 with the public key as its secret": () => {
      const signed = `${part({ alg: "HS256", kid: "RS256" })}.${part(claims({ roles: ["admin"] }))}`;
      return `${signed}.${createHmac("sha256", service.publicKey).update(signed).digest("base64url")}`;
    },
    "another key under a known kid": async () => {
      const { privateKey } = await generateKeyPair("RS256");
      return new SignJWT(claims()).setProtectedHeader({ alg: "RS256", kid: "RS256" }).sign(privateKey);
    },
    "a key of its own in the header": async () => {
      const { privateKey } = await generateKeyPair("RS256");
      const header = { alg: "RS256", jku: "http://127.0.0.1:1/jwks", x5u: "http://127.0.0.1:1/x5u" };
      return new SignJWT(claims()).setProtectedHeader(header).sign(privateKey);
    },
    "changed claims": async () => {
      const [head, , signature] = (await service.sign(claims())).split(".");
      return `${head}.${part(claims({ roles: ["admin"] }))}.${signature}`;
    },
    "another issuer": () => service.sign(claims({ iss: "https://elsewhere.example" })),
    "another audience": () => service.sign(claims({ aud: "another-service" })),
    "no audience": () => service.sign(claims({ aud: undefined as never })),
    "no end": () => service.sign(claims({ exp: undefined as never })),
    "no subject": () => service.sign(claims({ sub: undefined as never })),
    "expired beyond the leeway": () => service.sign(claims({ exp: inSeconds(-90) })),
    "not valid yet beyond the leeway": () => service.sign(claims({ nbf: inSeconds(600) })),
    "an unknown critical header": () => service.sign(claims(), { header: { crit: ["x"], x: 1 } }),
    "no token at all": () => "aaaa.bbbb.cccc",
    "five parts": () => "a.b.c.d.e",
  };

  it.each(Object.keys(attacks))("%s", async (name) => {
    expectProblem(await ask(await (attacks[name] as () => Promise<string>)()), "UNAUTHENTICATED");
  });

  it("but clocks may differ by a minute", async () => {
    expect(await ask(await service.sign(claims({ exp: inSeconds(-30) })))).toMatchObject({ status: 200 });
    expect(await ask(await service.sign(claims({ nbf: inSeconds(30) })))).toMatchObject({ status: 200 });
  });

  it("and one without the setting JWT_ISSUER is not even looked at", async () => {
    await close();
    service = await startLoginService();
    api = await startTestApi(LOGIN_REQUIRED);
    expectProblem(await ask(await service.sign(claims())), "UNAUTHENTICATED");
    expect(service.fetches()).toBe(0);
  });
});

describe("the keys of the login service", () => {
  beforeEach(open);
  afterEach(close);

  it("are fetched once, however many tokens name unknown keys", async () => {
    expect(await ask(await service.sign(claims()))).toMatchObject({ status: 200 });
    for (let n = 0; n < 50; n++) {
      expectProblem(await ask(await service.sign(claims(), { header: { kid: `unknown-${n}` } })), "UNAUTHENTICATED");
    }
    expect(service.fetches()).toBe(1);
  });

  it("that cannot be fetched are no fault of the token: 503, with few fetches", async () => {
    service.answerWith(500);
    const token = await service.sign(claims());
    for (let n = 0; n < 20; n++) {
      const answer = await ask(token);
      expectProblem(answer, "LOGIN_UNAVAILABLE");
      expect(answer.headers.get("retry-after")).toBe("2");
      expect(answer.text).not.toContain(service.issuer);
    }
    expect(service.fetches()).toBeGreaterThan(0);
    expect(service.fetches()).toBeLessThan(5);
  });

  it("do not matter for keys of Vitrina", async () => {
    service.answerWith(500);
    const { key } = await api.store.keys.create({ name: "k", role: "viewer" }, "test");
    expect(await ask(key)).toMatchObject({ status: 200 });
  });
});
