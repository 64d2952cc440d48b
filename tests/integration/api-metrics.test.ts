import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import { claimRequested, createPipeline, runTo, startTestApi, type TestApi } from "../support/api-client.ts";
import { parseScrape, type Scrape } from "../support/scrape.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

const metrics = async (): Promise<string> => (await api.get("/metrics")).text;
const look = async (): Promise<Scrape> => parseScrape(await metrics());

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

describe("R9 of each pipeline", () => {
  beforeAll(() => api.delete("/pipelines/waiting"));
  const seconds = (text: string): number => Date.parse(text) / 1000;
  const change = (name: string, assignment: string) =>
    api.database.query(`UPDATE etl.etl_pipelines SET ${assignment} WHERE name = $1`, [name]);

  it("tells when it last loaded; failures, pauses and restores of an index do not count", async () => {
    const id = await createPipeline(api, "loaded");
    const shown = async (): Promise<number> =>
      (await look()).value("vitrina_pipeline_last_success_timestamp_seconds", { pipeline: "loaded" });
    expect(await shown()).toBe(0);
    await runTo(api, id, { kind: "succeeded" });
    await api.database.query(
      "UPDATE etl.etl_runs SET finished_at = '2026-01-02 03:04:05.5+00' WHERE pipeline_id = $1",
      [id],
    );
    expect(await shown()).toBe(seconds("2026-01-02T03:04:05.5Z"));
    await runTo(api, id, { kind: "paused" });
    await runTo(api, id, { kind: "failed", mayPass: false, code: "INTERNAL", error: "It failed." });
    // Neither of these makes the target fresher.
    await api.store.requests.restore(id as PipelineId);
    await api.store.queue.finishRun(await claimRequested(api, id), { kind: "succeeded" });
    await api.post(`/pipelines/${id}/reconcile`);
    const reading = (await api.store.queue.claimNext(randomUUID(), 60_000, "read")) as Claim;
    await api.database.query("UPDATE etl.etl_runs SET verdict = 'MATCH', report = '{}' WHERE id = $1", [reading.runId]);
    await api.store.queue.finishRun(reading, { kind: "succeeded" });
    expect(await shown()).toBe(seconds("2026-01-02T03:04:05.5Z"));
  });

  it("tells by when its schedule calls for a load, counted from its last success or change", async () => {
    const id = await createPipeline(api, "scheduled", { schedule_interval: "0 3 * * 1-5 UTC" });
    const shown = async (): Promise<number> =>
      (await look()).value("vitrina_pipeline_due_timestamp_seconds", { pipeline: "scheduled" });
    await change("scheduled", "updated_at = '2026-01-01 12:00:00+00'"); // a Thursday
    expect(await shown()).toBe(seconds("2026-01-02T03:00:00Z"));
    await runTo(api, id, { kind: "succeeded" });
    await api.database.query("UPDATE etl.etl_runs SET finished_at = '2026-01-02 03:10:00+00' WHERE pipeline_id = $1", [
      id,
    ]);
    expect(await shown()).toBe(seconds("2026-01-05T03:00:00Z"));
    await change("scheduled", "updated_at = '2026-01-06 12:00:00+00', schedule_interval = '15m'");
    expect(await shown()).toBe(seconds("2026-01-06T12:15:00Z"));
    await change("scheduled", "schedule_interval = 'whenever'");
    expect((await look()).labelValues("vitrina_pipeline_due_timestamp_seconds", "pipeline")).not.toContain("scheduled");
  });

  it.each([
    ["2026-01-02 03:04:05.123456+00", "2026-01-02T03:04:05.123Z"],
    ["2026-01-02 03:04:05", "2026-01-02T03:04:05Z"],
    ["2026-01-02", "2026-01-02T00:00:00Z"],
    ["4711", undefined],
    ["infinity", undefined],
    ["0044-03-15 12:00:00+00 BC", undefined],
    ["2026-99-99", undefined],
  ])("tells the watermark %s if it is a time", async (watermark, time) => {
    const name = `mark_${watermark.replaceAll(/\W/g, "_")}`;
    const config = { mode: "incremental", incremental_key: "id", incremental_id_key: "id" };
    const id = await createPipeline(api, name, config);
    await api.store.state.set((await api.store.pipelines.get(id)).id, { value: watermark, id: null });
    const shown = await look();
    const lag = "vitrina_pipeline_watermark_timestamp_seconds";
    expect(shown.labelValues(lag, "pipeline").includes(name)).toBe(time !== undefined);
    if (time !== undefined) expect(shown.value(lag, { pipeline: name })).toBe(seconds(time));
  });

  it("says nothing once it is disabled or gone", async () => {
    await createPipeline(api, "switched_off", { enabled: false });
    await createPipeline(api, "deleted");
    expect((await look()).labelValues("vitrina_pipeline_status", "pipeline")).toContain("deleted");
    await api.delete("/pipelines/deleted");
    const shown = (await look()).labelValues("vitrina_pipeline_status", "pipeline");
    expect(shown).not.toContain("deleted");
    expect(shown).not.toContain("switched_off");
  });

  it("says it for at most 500, and how many were left out", async () => {
    const before = await look();
    expect(before.value("vitrina_pipelines_without_series")).toBe(0);
    const known = before.labelValues("vitrina_pipeline_status", "pipeline").length;
    await api.database.query(
      "INSERT INTO etl.etl_pipelines (name, target_table) SELECT 'zz_' || n, 'analytics.zz' FROM generate_series(1, 505) n",
    );
    const after = await look();
    expect(after.labelValues("vitrina_pipeline_status", "pipeline")).toHaveLength(500);
    expect(after.labelValues("vitrina_pipeline_status", "pipeline")).toContain("loaded");
    expect(after.value("vitrina_pipelines_without_series")).toBe(known + 5);
    expect(after.value("vitrina_pipelines")).toBe(before.value("vitrina_pipelines") + 505);
    await api.database.query("DELETE FROM etl.etl_pipelines WHERE name LIKE 'zz%'");
    expect((await look()).value("vitrina_pipelines_without_series")).toBe(0);
  });
});

it("R9 tells runners that live from those that were lost, and forgets who signed off", async () => {
  const add = (seen: string, stopped: string) =>
    api.database.query(
      `INSERT INTO etl.etl_runners (id, hostname, pid, version, last_seen_at, stopped_at)
       VALUES (gen_random_uuid(), 'h', 1, 'v', clock_timestamp() - interval '${seen}', ${stopped})`,
    );
  await add("1 second", "NULL");
  await add("5 minutes", "NULL");
  await add("10 minutes", "NULL");
  await add("5 minutes", "clock_timestamp()");
  await add("2 hours", "NULL");
  const shown = await look();
  expect(shown.value("vitrina_runners", { state: "alive" })).toBe(1);
  expect(shown.value("vitrina_runners", { state: "lost" })).toBe(2);
});

it("R9 counts a disabled pipeline among its status, but not among those that wait", async () => {
  const before = await look();
  await createPipeline(api, "asked_for");
  await api.post("/pipelines/asked_for/run");
  expect((await look()).value("vitrina_pipelines_waiting")).toBe(before.value("vitrina_pipelines_waiting") + 1);
  await api.patch("/pipelines/asked_for", { enabled: false });
  const after = await look();
  expect(after.value("vitrina_pipelines_waiting")).toBe(before.value("vitrina_pipelines_waiting"));
  expect(after.value("vitrina_pipelines", { status: "RUN_REQUESTED" })).toBe(
    before.value("vitrina_pipelines", { status: "RUN_REQUESTED" }) + 1,
  );
});

it("R9 goes on without the meta-store: it says so, and shows nothing that may be old", async () => {
  const lonely = await startTestApi();
  try {
    await createPipeline(lonely, "known");
    expect(parseScrape((await lonely.get("/metrics")).text).value("vitrina_meta_store_up")).toBe(1);
    await lonely.database.query("ALTER TABLE etl.etl_pipelines RENAME TO gone");
    const answer = await lonely.get("/metrics");
    expect(answer.status).toBe(200);
    const shown = parseScrape(answer.text);
    expect(shown.families.get("vitrina_meta_store_up")?.samples.map(({ value }) => value)).toEqual([0]);
    for (const name of ["vitrina_pipelines", "vitrina_pipelines_waiting", "vitrina_pipeline_status", "vitrina_runners"])
      expect(shown.families.get(name)?.samples, name).toEqual([]);
    expect(shown.value("vitrina_http_requests_total")).toBeGreaterThan(0);
    await lonely.database.query("ALTER TABLE etl.gone RENAME TO etl_pipelines");
    const again = parseScrape((await lonely.get("/metrics")).text);
    expect(again.value("vitrina_meta_store_up")).toBe(1);
    expect(again.value("vitrina_pipeline_status", { pipeline: "known" })).toBe(1);
  } finally {
    await lonely.stop();
  }
});
