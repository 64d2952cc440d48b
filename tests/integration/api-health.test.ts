import { afterEach, describe, expect, inject, it } from "vitest";
import { startApi } from "../../src/main/api.ts";
import { startTestApi, type TestApi } from "../support/api-client.ts";
import { createTestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

let stop: () => Promise<void> = async () => undefined;
afterEach(async () => {
  await stop();
  stop = async () => undefined;
});

async function start(): Promise<TestApi> {
  const api = await startTestApi();
  stop = () => api.stop();
  return api;
}

describe("health", () => {
  it("R3.2 answers for life and for readiness apart, with and without the prefix", async () => {
    const api = await start();
    for (const path of ["/health", "/health/live", "/health/ready"]) {
      for (const prefix of ["", "/api/v1"]) {
        expect(await api.get(prefix + path)).toMatchObject({ status: 200, body: { status: "ok" } });
      }
    }
  });

  it("lives but is not ready when the database is gone", async () => {
    const database = await createTestDatabase(inject("postgresUrl"));
    const api = await startApi(database.settings, database.urls, {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
    });
    stop = () => api.stop();
    await database.drop();
    const ready = await fetch(`${api.url}/health/ready`);
    expect(ready.status).toBe(503);
    expect(ready.headers.get("content-type")).toBe("application/problem+json");
    expect(await ready.json()).toEqual({
      type: "urn:vitrina:error:database-unavailable",
      title: "The database cannot be reached",
      status: 503,
      detail: "The database cannot be reached at the moment.",
      instance: "/health/ready",
      code: "DATABASE_UNAVAILABLE",
      hint: "Check that PostgreSQL is running and that its address is right.",
    });
    expect((await fetch(`${api.url}/health/live`)).status).toBe(200);
  });

  it("is not ready when the schema lacks a migration, and says which", async () => {
    const api = await start();
    const [last] = await api.database.query("DELETE FROM etl.schema_migrations RETURNING name");
    expect(last).toBeDefined();
    const { status, body } = await api.get("/health/ready");
    expect({ status, code: body.code }).toEqual({ status: 503, code: "SCHEMA_MISSING" });
    expect(body.detail).toMatch(/^The database lacks the migration 0001\S+\.$/);
    expect(body.hint).toBe("Run vitrina migrate first.");
  });

  it("takes no request on the schema of a newer program, only questions of health", async () => {
    const api = await start();
    expect((await api.get("/pipelines")).status).toBe(200);
    await api.database.query("INSERT INTO etl.schema_migrations VALUES (9999, '9999_later.sql', 'x')");
    const refused = await until("it has noticed", async () => {
      const answer = await api.get("/pipelines");
      return answer.status === 200 ? undefined : answer;
    });
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 503, code: "SCHEMA_TOO_NEW" });
    const created = await api.post("/pipelines", {
      name: "p",
      source_query: "SELECT 1 AS id",
      target_table: "analytics.p",
    });
    expect(created.body.code).toBe("SCHEMA_TOO_NEW");
    expect(await api.database.query("SELECT name FROM etl.etl_pipelines")).toEqual([]);
    expect((await api.get("/health/live")).status).toBe(200);
    await api.database.query("DELETE FROM etl.schema_migrations WHERE version = 9999");
    await until("it answers again", async () => (await api.get("/pipelines")).status === 200);
  });
});
