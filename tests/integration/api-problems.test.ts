import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { errorsOf, expectProblem, JSON_TYPE, startTestApi, type TestApi } from "../support/api-client.ts";
import { sendRaw } from "../support/raw-http.ts";
import { until } from "../support/until.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

describe("a query that is not valid", () => {
  it.each([
    ["limit=0", "/limit", "It must be at least 1."],
    ["limit=-1", "/limit", "It must be at least 1."],
    ["limit=201", "/limit", "It must be at most 200."],
    ["limit=abc", "/limit", "It must be a whole number."],
    ["limit=1.5", "/limit", "It must be a whole number."],
    ["limit=", "/limit", "It must be a whole number."],
    ["limit=0x1", "/limit", "It must be a whole number."],
    ["limit=1&limit=2", "/limit", "It must be a whole number."],
    ["after=a&after=b", "/after", "It must be text."],
    [`after=${"x".repeat(101)}`, "/after", "It must have at most 100 characters."],
    [
      "after=%00",
      "/after",
      "It contains a character that the database does not know: NUL, or half of a surrogate pair.",
    ],
    ["limt=5", "/limt", "Nothing of that name can be set here."],
    ["__proto__=5", "/__proto__", "Nothing of that name can be set here."],
  ])("answers 422: %s", async (query, pointer, message) => {
    const answer = await api.get(`/pipelines?${query}`);
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({ [pointer]: message });
    expect(answer.body.detail).toBe(`The query is not valid. ${pointer}: ${message}`);
    expect(answer.body.instance).toBe("/pipelines");
  });
});

describe("a path that leads nowhere", () => {
  it.each(["/nothing", "/api/v1", "/api/v1/nothing", "/api/v2/pipelines", "/docs/static/nothing.js", "//pipelines"])(
    "answers 404: %s",
    async (path) => {
      const answer = await api.get(path);
      expectProblem(answer, "NOT_FOUND");
      expect(answer.body.detail).toBe(`There is nothing at GET ${path}.`);
    },
  );

  const raw = [
    "../x",
    "../../package.json",
    "..%2f..%2fx",
    "%2e%2e/x",
    "..%5cx",
    "a/../../x",
    "%00",
    "a%00.js",
    "index.html%00",
    ".",
    "..",
    "%FF",
  ];
  it.each(raw)("never answers 500 for a file of the documentation: %s", async (file) => {
    const answer = await sendRaw(
      api.url,
      `GET /docs/static/${file} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 (200|30[128]|400|404) /);
  });

  it("answers 404 before it looks at the body", async () => {
    expectProblem(await api.send("/nothing", { method: "POST", body: "{", headers: JSON_TYPE }), "NOT_FOUND");
    expectProblem(await api.send("/nothing", { method: "POST", body: "x" }), "NOT_FOUND");
  });

  const unknown = [
    "nope",
    "00000000-0000-0000-0000-000000000000",
    "a%20b",
    "..%2F..%2Fetc",
    "%27%3B--",
    "%F0%9F%8E%AC",
  ];
  it.each(unknown)("R3.6 answers 404 for an unknown pipeline: %s", async (id) => {
    for (const path of ["", "/status", "/state", "/runs", "/runs/x"]) {
      expectProblem(await api.get(`/api/v1/pipelines/${id}${path}`), "PIPELINE_NOT_FOUND");
    }
    for (const path of ["/run", "/pause", "/cancel"]) {
      expectProblem(await api.post(`/api/v1/pipelines/${id}${path}`), "PIPELINE_NOT_FOUND");
    }
    expectProblem(await api.patch(`/api/v1/pipelines/${id}`, { batch_size: 1 }), "PIPELINE_NOT_FOUND");
    expectProblem(await api.delete(`/api/v1/pipelines/${id}`), "PIPELINE_NOT_FOUND");
  });

  it.each(["%00", "x".repeat(101), "x".repeat(10_000)])("answers 404 for an id that cannot exist", async (id) => {
    expectProblem(await api.get(`/pipelines/${id}`), "NOT_FOUND");
  });

  it.each(["%zz", "%", "%ED%A0%80"])("answers 400 for a path that is not a URL: %s", async (id) => {
    const answer = await api.get(`/pipelines/${id}`);
    expectProblem(answer, "MALFORMED_REQUEST");
    expect(answer.body.detail).toBe("The path is not a valid URL: a % in it encodes no UTF-8 character.");
  });
});

describe("a method that a path does not have", () => {
  it.each([
    ["PUT", "/pipelines", "GET, HEAD, POST"],
    ["DELETE", "/api/v1/pipelines", "GET, HEAD, POST"],
    ["PUT", "/pipelines/x", "DELETE, GET, HEAD, PATCH"],
    ["GET", "/pipelines/x/run", "POST"],
    ["DELETE", "/api/v1/pipelines/x/pause/", "POST"],
    ["POST", "/pipelines/x/runs", "GET, HEAD"],
    ["POST", "/health", "GET, HEAD"],
    ["PATCH", "/openapi.json", "GET, HEAD"],
  ])("answers 405 and names those it has: %s %s", async (method, path, allow) => {
    const answer = await api.send(path, { method, ...(method !== "GET" && { body: "{", headers: JSON_TYPE }) });
    expectProblem(answer, "METHOD_NOT_ALLOWED");
    expect(answer.headers.get("allow")).toBe(allow);
    expect(answer.body.detail).toBe(`${path} has no ${method}, only ${allow}.`);
  });

  it("answers HEAD wherever it answers GET", async () => {
    expect(await api.send("/pipelines", { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    expect(await api.send("/pipelines/nope", { method: "HEAD" })).toMatchObject({ status: 404, text: "" });
  });
});

describe("trouble inside", () => {
  afterEach(() => api.database.query("GRANT SELECT ON etl.etl_pipelines TO vitrina_meta"));

  it("answers 500 without a word about the inside, which is in the log under the request's id", async () => {
    await api.database.query("REVOKE SELECT ON etl.etl_pipelines FROM vitrina_meta");
    for (const path of ["/api/v1/pipelines", "/pipelines/film_dim"]) {
      const answer = await api.get(path);
      expectProblem(answer, "INTERNAL");
      expect(answer.text).not.toMatch(/etl|vitrina_meta|permission|database|select/i);
      const { request_id, detail } = answer.body;
      expect(detail).toBe(`Vitrina could not answer. The log says why, under the request id ${request_id}.`);
      const line = api.logged.find((logged) => logged.includes(request_id));
      expect(line).toContain("permission denied for table etl_pipelines");
    }
  });

  it("answers 503 with a time to come back when the database refuses connections, and recovers", async () => {
    const name = new URL(api.database.url).pathname.slice(1);
    await api.database.query(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
    await api.database.query(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'vitrina api'`,
    );
    const answer = await api.get("/pipelines");
    await api.database.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    expectProblem(answer, "TOO_MANY_CONNECTIONS");
    expect(answer.body.detail).toBe("The database has no connection left at the moment.");
    expect(answer.headers.get("retry-after")).toBe("2");
    await until("it answers again", async () => (await api.get("/pipelines")).status === 200);
  });
});

describe("requests that are cut off", () => {
  it("does not harm the next one", async () => {
    const { hostname, port } = new URL(api.url);
    await new Promise<void>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          "POST /pipelines HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
        );
        socket.end(() => socket.destroy());
      });
      socket.on("error", reject).on("close", () => resolve());
    });
    expect(await api.get("/health")).toMatchObject({ status: 200 });
  });
});
