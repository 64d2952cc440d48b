import { afterEach, describe, expect, it } from "vitest";
import { bearer, expectProblem, JSON_TYPE, pipelineBody, startTestApi, type TestApi } from "../support/api-client.ts";
import { makeKeys } from "../support/callers.ts";
import { sendRaw } from "../support/raw-http.ts";

let api: TestApi;
afterEach(() => api.stop());

const start = async (settings: Record<string, string> = {}): Promise<void> => {
  api = await startTestApi(settings);
};

/** Raw, because fetch sets Host and Origin itself. */
const statusOf = async (head: string): Promise<string | undefined> =>
  /^HTTP\/1\.1 (\d+)/.exec(await sendRaw(api.url, `${head}\r\nconnection: close\r\n\r\n`))?.[1];

describe("limits", () => {
  it("R8.5 guessing keys ends in 429 with a time to come back, and who has a valid key still gets in", async () => {
    await start({ API_AUTH: "required", API_FAILED_LOGINS_PER_MINUTE: "5" });
    const { viewer } = await makeKeys(api);
    const guess = `vitrina_${"0".repeat(12)}_${"A".repeat(43)}`;
    for (let n = 0; n < 5; n++)
      expectProblem(await api.send("/pipelines", { headers: bearer(guess) }), "UNAUTHENTICATED");
    for (let n = 0; n < 3; n++) {
      const answer = await api.send("/pipelines", { headers: bearer(guess) });
      expectProblem(answer, "TOO_MANY_FAILED_LOGINS");
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect(await api.send("/pipelines", { headers: bearer(viewer) })).toMatchObject({ status: 200 });
  });

  it("each caller has a limit of its own", async () => {
    await start({ API_AUTH: "required", API_RATE_LIMIT_PER_MINUTE: "3" });
    const { viewer, editor } = await makeKeys(api);
    for (let n = 0; n < 3; n++)
      expect(await api.send("/pipelines", { headers: bearer(viewer) })).toMatchObject({ status: 200 });
    const answer = await api.send("/pipelines", { headers: bearer(viewer) });
    expectProblem(answer, "RATE_LIMITED");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await api.send("/pipelines", { headers: bearer(editor) })).toMatchObject({ status: 200 });
  });

  it("each address has one, too, also for what needs no login", async () => {
    await start({ API_AUTH: "required", API_RATE_LIMIT_PER_MINUTE: "2" });
    for (let n = 0; n < 10; n++) expect((await api.get("/nothing")).status).toBe(404);
    expectProblem(await api.get("/nothing"), "RATE_LIMITED");
    expectProblem(await api.get("/pipelines"), "RATE_LIMITED");
  });

  it("believes X-Forwarded-For from a trusted proxy only", async () => {
    const knock = (address: string) => api.send("/health", { headers: { "x-forwarded-for": address } });
    await start({ API_RATE_LIMIT_PER_MINUTE: "1" });
    for (let n = 0; n < 5; n++) expect((await knock(`10.0.0.${n}`)).status).toBe(200);
    expectProblem(await knock("10.0.0.9"), "RATE_LIMITED");
    await api.stop();
    await start({ API_RATE_LIMIT_PER_MINUTE: "1", API_TRUSTED_PROXIES: "127.0.0.0/8" });
    for (let n = 0; n < 9; n++) expect((await knock(`10.0.0.${n}`)).status).toBe(200);
  });

  it("without a login there is none", async () => {
    await start();
    const answers = await Promise.all(Array.from({ length: 700 }, () => api.get("/health")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe("without a login", () => {
  it("R8.5 answers only to names of this machine, so that no page can point a name of its own at it", async () => {
    await start();
    for (const host of ["localhost", "localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST:1"]) {
      expect(await statusOf(`GET /pipelines HTTP/1.1\r\nhost: ${host}`)).toBe("200");
    }
    for (const host of [
      "evil.example",
      "evil.example:8000",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "10.0.0.1",
      "",
    ]) {
      expect(await statusOf(`GET /pipelines HTTP/1.1\r\nhost: ${host}`)).toBe("421");
      expect(await statusOf(`GET /nothing HTTP/1.1\r\nhost: ${host}`)).toBe("421");
    }
    const answer = await sendRaw(api.url, "GET /pipelines HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    expect(answer).toContain("application/problem+json");
    expect(answer).toContain('"code":"HOST_NOT_ALLOWED"');
  });

  it("a page of another origin changes nothing, not even by a POST without a body", async () => {
    await start();
    await api.post("/pipelines", pipelineBody("film"));
    for (const origin of ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1.evil.example"]) {
      const answer = await api.send("/pipelines/film/run", { method: "POST", headers: { origin } });
      expectProblem(answer, "ORIGIN_NOT_ALLOWED");
    }
    expect((await api.get("/pipelines/film")).body).toMatchObject({ status: "IDLE" });
    const own = await api.send("/pipelines/film/run", { method: "POST", headers: { origin: api.url } });
    expect(own.body).toMatchObject({ status: "RUN_REQUESTED" });
  });

  it("a page of the allow-list may", async () => {
    await start({ API_CORS_ORIGINS: "http://localhost:3000" });
    await api.post("/pipelines", pipelineBody("film"));
    const headers = { origin: "http://localhost:3000" };
    const answer = await api.send("/pipelines/film/run", { method: "POST", headers });
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:3000");
  });
});

describe("with a login", () => {
  it("answers to any name, or to those of API_ALLOWED_HOSTS", async () => {
    await start({ API_AUTH: "required" });
    expect(await statusOf("GET /health HTTP/1.1\r\nhost: etl.example")).toBe("200");
    await api.stop();
    await start({ API_AUTH: "required", API_ALLOWED_HOSTS: "etl.example" });
    expect(await statusOf("GET /health HTTP/1.1\r\nhost: etl.example:443")).toBe("200");
    expect(await statusOf("GET /health HTTP/1.1\r\nhost: localhost")).toBe("421");
  });
});

describe("pages of other origins", () => {
  const preflight = {
    method: "OPTIONS",
    headers: { origin: "https://etl.example", "access-control-request-method": "POST" },
  };

  it("read nothing by default", async () => {
    await start();
    for (const path of ["/pipelines", "/health"]) {
      const { headers } = await api.send(path, { headers: { origin: "https://etl.example" } });
      expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    const { status, headers } = await api.send("/pipelines", preflight);
    expect({ status, allowed: headers.get("access-control-allow-origin") }).toEqual({ status: 405, allowed: null });
  });

  it("read when they are exactly on the list, and never with credentials", async () => {
    await start({ API_AUTH: "required", API_CORS_ORIGINS: "https://etl.example,https://other.example" });
    const allowed = await api.send("/pipelines", preflight);
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://etl.example");
    expect(allowed.headers.get("access-control-allow-headers")).toContain("authorization");
    expect(allowed.headers.get("access-control-allow-credentials")).toBeNull();
    expect(allowed.headers.get("vary")).toBe("origin");
    for (const origin of ["https://etl.example.evil.example", "http://etl.example", "https://ETL.example", "null"]) {
      const { headers } = await api.send("/pipelines", { ...preflight, headers: { ...preflight.headers, origin } });
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("security headers", () => {
  it("are on every answer, and the documentation keeps its own policy", async () => {
    await start();
    for (const path of ["/pipelines", "/nothing", "/pipelines/nope"]) {
      const { headers } = await api.get(path);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("SAMEORIGIN");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("x-powered-by")).toBeNull();
    }
    expect((await api.get("/docs")).headers.get("content-security-policy")).toMatch(/^default-src 'self'/);
  });
});

describe("what is hardly a request", () => {
  const problemIn = (answer: string) => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));

  it.each([
    ["not HTTP", "hello\r\n\r\n", 400, "MALFORMED_REQUEST"],
    [
      "headers without end",
      `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(100_000)}\r\n\r\n`,
      431,
      "HEADERS_TOO_LARGE",
    ],
    ["a URL without end", `GET /${"x".repeat(100_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 431, "HEADERS_TOO_LARGE"],
    ["no host", "GET /pipelines HTTP/1.1\r\nconnection: close\r\n\r\n", 400, "MALFORMED_REQUEST"],
    [
      "two lengths",
      "POST /pipelines HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
      400,
      "MALFORMED_REQUEST",
    ],
  ])("is answered as a problem: %s", async (_, bytes, status, code) => {
    await start();
    const answer = await sendRaw(api.url, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain("application/problem+json");
    expect(problemIn(answer)).toMatchObject({ status, code, hint: expect.any(String), detail: expect.any(String) });
    expect(await api.get("/health")).toMatchObject({ status: 200 });
  });

  it.each([
    ["headers", "GET /pipelines HTTP/1.1\r\nhost: localhost\r\n"],
    [
      "a body in chunks",
      "POST /pipelines HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
  ])("ends when it dawdles: %s", async (_, bytes) => {
    await start({ API_REQUEST_TIMEOUT_SECONDS: "1" });
    const answer = await sendRaw(api.url, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(problemIn(answer)).toMatchObject({ code: "REQUEST_TIMEOUT" });
    expect(await api.get("/health")).toMatchObject({ status: 200 });
  });

  it("is refused fast and harmlessly: bodies of every wrong kind", async () => {
    await start();
    const bodies: [string, Record<string, string>, string][] = [
      ["{", JSON_TYPE, "MALFORMED_REQUEST"],
      ["x".repeat(10_000_000), JSON_TYPE, "BODY_TOO_LARGE"],
      [`${"[".repeat(10_000)}${"]".repeat(10_000)}`, JSON_TYPE, "MALFORMED_REQUEST"],
      ['{"__proto__": {"admin": true}}', JSON_TYPE, "INVALID_REQUEST"],
      ['{"name": "a", "name": "b"}', JSON_TYPE, "INVALID_REQUEST"],
      ["<x/>", { "content-type": "application/xml" }, "UNSUPPORTED_MEDIA_TYPE"],
    ];
    for (const [body, headers, code] of bodies) {
      expectProblem(await api.send("/pipelines", { method: "POST", body, headers }), code as "INVALID_REQUEST");
    }
    expect("admin" in {}).toBe(false);
    expect((await api.get("/pipelines")).body.items).toEqual([]);
  });
});
