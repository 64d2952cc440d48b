import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PIPELINE_STATUSES } from "../../src/domain/pipeline-status.ts";
import { startTestApi, type TestApi } from "../support/api-client.ts";

interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: { name: string; in: string; required: boolean; description: string }[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: { $ref?: string } }> }>;
}

interface Documentation {
  openapi: string;
  info: object;
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { properties: Record<string, object>; required: string[] }> };
}

let api: TestApi;
let documentation: Documentation;
let operations: { path: string; method: string; operation: Operation }[];
beforeAll(async () => {
  api = await startTestApi();
  documentation = (await api.get("/openapi.json")).body;
  operations = Object.entries(documentation.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
});
afterAll(() => api.stop());

describe("/openapi.json", () => {
  it("R3.2 is OpenAPI 3.1 and lists every path once, with the prefix", async () => {
    expect(documentation).toMatchObject({ openapi: "3.1.0", info: { title: "Vitrina", version: expect.any(String) } });
    expect(operations.map(({ path, method }) => `${method} ${path.replace("/api/v1", "")}`).sort()).toEqual([
      "delete /keys/{id}",
      "delete /pipelines/{id}",
      "get /audit",
      "get /events",
      "get /graph",
      "get /health",
      "get /health/live",
      "get /health/ready",
      "get /keys",
      "get /metrics",
      "get /pipelines",
      "get /pipelines/{id}",
      "get /pipelines/{id}/follow",
      "get /pipelines/{id}/follow/plan",
      "get /pipelines/{id}/reconcile",
      "get /pipelines/{id}/reconciles",
      "get /pipelines/{id}/reconciles/{reconcile_id}",
      "get /pipelines/{id}/rejects",
      "get /pipelines/{id}/runs",
      "get /pipelines/{id}/runs/{run_id}",
      "get /pipelines/{id}/runs/{run_id}/logs",
      "get /pipelines/{id}/state",
      "get /pipelines/{id}/status",
      "get /pipelines/{id}/tasks",
      "get /pipelines/{id}/versions",
      "get /pipelines/{id}/versions/{version}",
      "get /pipelines/{id}/versions/{version}/diff",
      "get /runners",
      "get /runs",
      "get /sources/{connection}/follow/script",
      "get /tasks",
      "patch /pipelines/{id}",
      "post /apply",
      "post /keys",
      "post /pipelines",
      "post /pipelines/{id}/cancel",
      "post /pipelines/{id}/pause",
      "post /pipelines/{id}/preview",
      "post /pipelines/{id}/reconcile",
      "post /pipelines/{id}/rejects/discard",
      "post /pipelines/{id}/rejects/retry",
      "post /pipelines/{id}/reload-config",
      "post /pipelines/{id}/restore-previous",
      "post /pipelines/{id}/run",
      "post /pipelines/{id}/state/keep",
      "post /pipelines/{id}/state/reset",
      "post /pipelines/{id}/state/set",
      "post /pipelines/{id}/update-config",
      "post /pipelines/{id}/validate",
      "post /pipelines/{id}/versions/{version}/restore",
      "post /preview",
      "post /validate",
      "put /pipelines/{id}/tasks",
    ]);
    expect(operations.every(({ path }) => path.startsWith("/api/v1/"))).toBe(true);
    expect((await api.get("/api/v1/openapi.json")).body).toEqual(documentation);
  });

  it("describes every operation: summary, a camelCase id of its own, a known tag, its parameters", () => {
    const tags = documentation.tags.map(({ name }) => name);
    for (const { path, operation } of operations) {
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
      expect(operation.operationId).toMatch(/^[a-z]+([A-Z][a-z]+)*$/);
      expect(tags).toEqual(expect.arrayContaining(operation.tags));
      expect(operation.tags).toHaveLength(1);
      const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(inPath.map(({ name }) => name)).toEqual(names);
      for (const { description } of operation.parameters ?? []) expect(description).toMatch(/\.$/);
    }
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("describes every answer, and every problem as problem details", () => {
    for (const { path, operation } of operations) {
      const answers = Object.entries(operation.responses);
      expect(answers.some(([status]) => status.startsWith("2"))).toBe(true);
      const takesNothing =
        !path.includes("{") && operation.parameters === undefined && operation.requestBody === undefined;
      expect(takesNothing || answers.some(([status]) => status.startsWith("4"))).toBe(true);
      const namesSomething = path.includes("{") || (operation.parameters ?? []).some(({ name }) => name === "pipeline");
      expect(namesSomething).toBe("404" in operation.responses);
      expect(operation.requestBody !== undefined).toBe("415" in operation.responses);
      for (const [status, { description, content }] of answers) {
        expect(description).toMatch(/^[A-Z].*\.$/);
        if (/^[23]/.test(status)) continue;
        const schema = content?.["application/problem+json"]?.schema;
        expect(schema).toEqual({ $ref: "#/components/schemas/Problem" });
      }
    }
  });

  it("names what is used again, and every reference leads to something", () => {
    const { schemas } = documentation.components;
    expect(Object.keys(schemas).sort()).toEqual(["Pipeline", "Problem", "Reconcile", "Run"]);
    const references = [...JSON.stringify(documentation).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
    expect(references).not.toHaveLength(0);
    const known = Object.keys(schemas).map((name) => `#/components/schemas/${name}`);
    expect(known).toEqual(expect.arrayContaining(references));
    expect(JSON.stringify(documentation)).not.toMatch(/\$defs|"definitions"|"nullable"|"undefined"/);
  });

  it("describes pipelines as they are answered", async () => {
    const { Pipeline, Run } = documentation.components.schemas;
    await api.post("/pipelines", { name: "film", source_query: "SELECT 1 AS id", target_table: "analytics.film" });
    const answered = Object.keys((await api.get("/pipelines/film")).body).sort();
    expect(Object.keys(Pipeline?.properties ?? {}).sort()).toEqual(answered);
    expect([...(Pipeline?.required ?? [])].sort()).toEqual(answered);
    const date = { type: "string", format: "date-time" };
    expect(Pipeline?.properties).toMatchObject({ created_at: date, status: { enum: PIPELINE_STATUSES } });
    expect(Run?.properties).toMatchObject({ started_at: date, finished_at: { anyOf: [date, { type: "null" }] } });
  });
});

describe("/docs", () => {
  it("R3.2 works without the Internet: everything comes from this server", async () => {
    for (const path of ["/docs", "/docs/"]) {
      const page = await api.get(path);
      expect(page.status).toBe(200);
      expect(page.headers.get("content-type")).toMatch(/^text\/html/);
      expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'self'/);
      expect(page.text).not.toMatch(/(?:https?:)?\/\/\w/);
      const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, href]) => href as string);
      expect(assets.filter((href) => href.endsWith(".js"))).toHaveLength(3);
      expect(assets.filter((href) => href.endsWith(".css"))).toHaveLength(2);
      for (const asset of assets) {
        const { status, text } = await api.get(new URL(asset, `${api.url}${path}`).pathname);
        expect({ asset, status }).toEqual({ asset, status: 200 });
        expect(text).not.toBe("");
      }
    }
  });

  it("loads this API, and sends it to no validator elsewhere", async () => {
    const { text } = await api.get("/docs/static/swagger-initializer.js");
    expect(text).toContain("resolveUrl('./json')");
    expect(text).toContain("validatorUrl: null");
    expect((await api.get("/docs/json")).body).toEqual(documentation);
  });

  it("is where / leads", async () => {
    const { status, headers } = await api.send("/", { redirect: "manual" });
    expect({ status, location: headers.get("location") }).toEqual({ status: 302, location: "/docs" });
  });
});
