import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createPipeline,
  errorsOf,
  expectProblem,
  pipelineBody,
  rowOf,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";
import { type Bench, openBench } from "../support/pipelines.ts";

describe("R8.2 a pipeline whose query is refused", () => {
  let api: TestApi;
  beforeEach(async () => {
    api = await startTestApi();
  });
  afterEach(() => api.stop());

  it("is not created; every mistake is told with its field, line and column", async () => {
    const answer = await api.post(
      "/api/v1/pipelines",
      pipelineBody("spy", { source_query: "SELECT u.id,\n  pg_sleep(1)\nFROM auth.users u", target_table: "nowhere" }),
    );
    expectProblem(answer, "INVALID_REQUEST");
    const sleep = expect.stringMatching(/^Line 2, column 3: the function pg_sleep .*\.$/);
    const users = expect.stringMatching(/^Line 3, column 6: the table auth\.users .*\.$/);
    expect(answer.body.errors).toEqual([
      { pointer: "/target_table", message: expect.any(String) },
      { pointer: "/source_query", message: sleep, line: 2, column: 3 },
      { pointer: "/source_query", message: users, line: 3, column: 6 },
    ]);
    expect(await api.get("/pipelines")).toMatchObject({ body: { items: [] } });
  });

  it("is not created with a task that reads, wherever that stands in the list", async () => {
    const tasks = [
      { order_index: 2, task_type: "TYPESCRIPT", body: "normalise_title" },
      { order_index: 1, task_type: "SQL", body: "SELECT id FROM auth.users" },
    ];
    const answer = await api.post("/pipelines", pipelineBody("spy", { tasks, source_query: "this is ignored" }));
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({ "/tasks/1/body": expect.stringContaining("auth.users") });
  });

  it("is not changed to it", async () => {
    const id = await createPipeline(api, "film");
    const before = await rowOf(api, id);
    const answer = await api.patch(`/pipelines/${id}`, { source_query: "DELETE FROM content.film" });
    expectProblem(answer, "INVALID_REQUEST");
    expect(errorsOf(answer)).toEqual({
      "/source_query": "Line 1, column 1: a query is one SELECT, and this is DELETE.",
    });
    expect(await rowOf(api, id)).toEqual(before);
  });

  it("can still be changed in other ways, when it was there before", async () => {
    const id = await createPipeline(api, "old");
    await api.database.query("UPDATE etl.etl_pipelines SET source_query = 'SELECT * FROM auth.users' WHERE id = $1", [
      id,
    ]);
    expect(await api.patch(`/pipelines/${id}`, { enabled: false })).toMatchObject({ status: 200 });
  });
});

describe("R8.2 a run", () => {
  let bench: Bench;
  afterEach(() => bench.close());

  async function start(settings: Record<string, string> = {}): Promise<void> {
    bench = await openBench(settings);
    await bench.query("CREATE SCHEMA auth; CREATE TABLE auth.users AS SELECT 1 AS id, 's3cret' AS title");
    await bench.query("CREATE TABLE content.film AS SELECT 1 AS id, 'Film' AS title");
    await bench.startRunner();
  }

  it("reads nothing when a view of its query was changed to a table outside, after it was accepted", async () => {
    await start();
    await bench.query("CREATE VIEW content.films AS SELECT id, title FROM content.film");
    const pipeline = await bench.create({ source_query: "SELECT id, title FROM content.films", target_key: ["id"] });
    expect(await bench.run(pipeline)).toMatchObject({ status: "SUCCESS", rows_written: 1 });

    await bench.query("CREATE OR REPLACE VIEW content.films AS SELECT id, title FROM auth.users");
    const refused = await bench.run(pipeline);
    expect(refused).toMatchObject({ status: "FAILED", error_code: "QUERY_REFUSED", rows_read: 0 });
    expect(refused.error).toMatch(/auth\.users \(reached through content\.films\) is outside the allowed schemas/);
    expect(await bench.rowsOf(pipeline.target_table)).toEqual(["(1,Film)"]);
  });

  it("holds its query against the schemas of its own settings", async () => {
    await start({ SOURCE_SCHEMAS: "staging" });
    const pipeline = await bench.create({ source_query: "SELECT id, title FROM content.film", target_key: ["id"] });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "QUERY_REFUSED" });
  });

  it("ends when its query is silent for too long", async () => {
    await start({ READ_TIMEOUT_SECONDS: "1" });
    const pipeline = await bench.create({
      source_query: "WITH RECURSIVE r (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT max(id) AS id FROM r",
      target_key: ["id"],
    });
    expect(await bench.run(pipeline)).toMatchObject({ status: "FAILED", error_code: "STATEMENT_TIMEOUT", attempt: 1 });
  });
});
