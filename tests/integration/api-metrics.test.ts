import { afterAll, beforeAll, expect, it } from "vitest";
import { createPipeline, startTestApi, type TestApi } from "../support/api-client.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

const metrics = async (): Promise<string> => (await api.get("/metrics")).text;

it("R9 counts requests by route, never by what is in the path", async () => {
  await api.get("/api/v1/pipelines/nobody_of_that_name");
  await api.get("/pipelines/nobody_of_that_name");
  await api.get("/nothing/here");
  await api.send("/pipelines", { method: "PUT" });
  const text = await metrics();
  expect(text).toContain('vitrina_http_requests_total{method="GET",route="/pipelines/:id",status="404"} 2');
  expect(text).toContain('vitrina_http_requests_total{method="other",route="none",status="404"} 1');
  expect(text).toContain('vitrina_http_requests_total{method="other",route="none",status="405"} 1');
  expect(text).not.toContain("nobody_of_that_name");
  expect(text).toMatch(
    /^vitrina_http_request_duration_seconds_bucket\{le="60",method="GET",route="\/pipelines\/:id"\} 2$/m,
  );
});

it("R9 tells how many pipelines there are of each status, and how long the first has been waiting", async () => {
  await createPipeline(api, "idle");
  await createPipeline(api, "waiting");
  expect(await metrics()).toMatch(/^vitrina_oldest_waiting_seconds 0$/m);
  await api.post("/pipelines/waiting/run");
  await api.database.query(
    "UPDATE etl.etl_pipelines SET run_requested_at = clock_timestamp() - interval '1 hour' WHERE name = 'waiting'",
  );
  const text = await metrics();
  expect(text).toMatch(/^vitrina_pipelines\{status="IDLE"\} 1$/m);
  expect(text).toMatch(/^vitrina_pipelines\{status="RUN_REQUESTED"\} 1$/m);
  expect(text).toMatch(/^vitrina_pipelines\{status="FAILED"\} 0$/m);
  expect(Number(/^vitrina_oldest_waiting_seconds (\S+)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(3600);
});

it("R3.2 answers in the format of Prometheus, with and without the prefix", async () => {
  for (const path of ["/metrics", "/api/v1/metrics"]) {
    const answer = await api.get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(answer.text).toMatch(/^# TYPE process_cpu_seconds_total counter$/m);
  }
});
