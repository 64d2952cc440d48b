import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Claim, RunOutcome } from "../../src/meta-store/ports/run-queue.ts";
import {
  claim,
  createPipeline,
  JSON_TYPE,
  LEASE_MS,
  rowOf,
  runTo,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const failed = { kind: "failed", mayPass: false, code: "SOURCE_QUERY_FAILED", error: "It did not work." } as const;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

describe("asking for a run", () => {
  it("R3.3 requests it once, however often it is asked", async () => {
    const id = await createPipeline(api, "film_dim");
    const first = await api.post(`/api/v1/pipelines/${id}/run`);
    expect(first).toMatchObject({ status: 200, body: { id, status: "RUN_REQUESTED", config_version: 1 } });
    const before = await rowOf(api, id);
    expect(await api.post("/pipelines/film_dim/run")).toMatchObject({ status: 200, body: first.body });
    expect(await rowOf(api, id)).toEqual(before);
    await api.store.queue.claimNext(randomUUID(), LEASE_MS);
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200, body: { status: "RUNNING" } });
    expect((await api.get(`/pipelines/${id}/runs`)).body.items).toHaveLength(1);
  });

  it.each<[string, RunOutcome]>([
    ["PAUSED", { kind: "paused" }],
    ["FAILED", failed],
    ["IDLE", { kind: "succeeded" }],
  ])("R3.3 runs again when it is %s", async (status, outcome) => {
    const id = await createPipeline(api, "film_dim");
    await runTo(api, id, outcome);
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { status } });
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED" } });
  });

  it("R3.3 refuses a disabled pipeline, and one whose pause is not over, with 409 and the status", async () => {
    await createPipeline(api, "off", { enabled: false });
    const off = await api.post("/pipelines/off/run");
    expect(off).toMatchObject({ status: 409, body: { code: "PIPELINE_DISABLED", hint: "Set enabled to true first." } });
    expect(await api.get("/pipelines/off")).toMatchObject({ body: { status: "IDLE" } });

    const id = await createPipeline(api, "film_dim");
    await claim(api, id);
    await api.post(`/pipelines/${id}/pause`);
    expect(await api.post(`/pipelines/${id}/run`)).toMatchObject({
      status: 409,
      body: { code: "STATUS_CONFLICT", pipeline_status: "PAUSE_REQUESTED" },
    });
  });

  it.each<[string, RequestInit]>([
    ["no body", {}],
    ["an empty object", { body: "{}", headers: JSON_TYPE }],
    ["an empty body that claims to be JSON", { body: "", headers: JSON_TYPE }],
    [
      "an empty form, as curl -d '' sends",
      { body: "", headers: { "content-type": "application/x-www-form-urlencoded" } },
    ],
  ])("takes %s", async (_, init) => {
    await createPipeline(api, "film_dim");
    expect(await api.send("/pipelines/film_dim/run", { method: "POST", ...init })).toMatchObject({ status: 200 });
  });

  it("lets exactly the asked pipeline run when many ask at once", async () => {
    await createPipeline(api, "film_dim");
    await createPipeline(api, "other");
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.post("/pipelines/film_dim/run")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await api.get("/pipelines/other")).toMatchObject({ body: { status: "IDLE" } });
  });
});

describe("asking to cancel", () => {
  it("withdraws a request, and is no conflict where there is nothing to withdraw", async () => {
    const id = await createPipeline(api, "film_dim");
    const { body: asked } = await api.post(`/pipelines/${id}/run`);
    for (const path of ["/api/v1/pipelines", "/pipelines"]) {
      expect(await api.post(`${path}/${id}/cancel`)).toMatchObject({ status: 200, body: { id, status: "IDLE" } });
    }
    const { body } = await api.get(`/pipelines/${id}/status?run_request=${asked.run_request}`);
    expect(body).toMatchObject({ over: true, last_run: null });
  });

  it("asks the runner to end the run, which is told as cancelled; run and pause are refused until then", async () => {
    const id = await createPipeline(api, "film_dim");
    const claimed = await claim(api, id);
    for (let asked = 0; asked < 2; asked++) {
      expect(await api.post(`/pipelines/${id}/cancel`)).toMatchObject({
        status: 200,
        body: { status: "CANCEL_REQUESTED" },
      });
    }
    for (const what of ["run", "pause"]) {
      expect(await api.post(`/pipelines/${id}/${what}`)).toMatchObject({
        status: 409,
        body: { code: "STATUS_CONFLICT", pipeline_status: "CANCEL_REQUESTED" },
      });
    }
    expect(await api.get(`/pipelines/${id}/status`)).toMatchObject({ body: { over: false } });
    await api.store.queue.finishRun(claimed, { kind: "cancelled" });
    expect(await api.get(`/pipelines/${id}/status`)).toMatchObject({
      body: { status: "IDLE", over: true, last_run: { status: "CANCELLED" } },
    });
    expect(await api.get(`/pipelines/${id}/runs?status=CANCELLED`)).toMatchObject({ body: { items: [{}] } });
  });
});

describe("asking for a pause", () => {
  it("R3.3 requests it once, and a paused pipeline stays paused", async () => {
    const id = await createPipeline(api, "film_dim");
    const claimed = await claim(api, id);
    for (let asked = 0; asked < 2; asked++) {
      expect(await api.post(`/api/v1/pipelines/${id}/pause`)).toMatchObject({
        status: 200,
        body: { id, status: "PAUSE_REQUESTED" },
      });
    }
    await api.store.queue.finishRun(claimed, { kind: "paused" });
    expect(await api.post(`/pipelines/${id}/pause`)).toMatchObject({ status: 200, body: { status: "PAUSED" } });
  });

  it("R3.3 refuses where nothing runs, with 409 and the status", async () => {
    const id = await createPipeline(api, "film_dim");
    const { status, headers, body } = await api.post(`/pipelines/${id}/pause`);
    expect(status).toBe(409);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(body).toMatchObject({ code: "STATUS_CONFLICT", pipeline_status: "IDLE" });
    expect(body.detail).toBe("film_dim is IDLE; it can be paused only when it is RUNNING, PAUSE_REQUESTED, PAUSED.");
    expect(await api.get(`/pipelines/${id}`)).toMatchObject({ body: { status: "IDLE" } });
  });
});

describe("what happened", () => {
  it("R3.2 tells the status and the last run", async () => {
    const id = await createPipeline(api, "film_dim");
    const resting = { status: "IDLE", enabled: true, run_request: 0, waiting: null, over: true, last_run: null };
    const fresh = { id, name: "film_dim", ...resting };
    expect((await api.get(`/api/v1/pipelines/${id}/status`)).body).toEqual(fresh);
    await runTo(api, id, { kind: "succeeded" });
    await runTo(api, id, failed);
    const { body } = await api.get("/pipelines/film_dim/status");
    expect(body).toMatchObject({ status: "FAILED", last_run: { status: "FAILED", error: "It did not work." } });
    const { items } = (await api.get("/pipelines/film_dim/runs")).body;
    expect(body.last_run).toEqual(items[0]);
  });

  it("R6.3 tells the checkpoint, empty before the first batch", async () => {
    const id = await createPipeline(api, "film_dim");
    expect((await api.get(`/api/v1/pipelines/${id}/state`)).body).toEqual({
      pipeline_id: id,
      last_processed_value: null,
      last_processed_id: null,
      scan_position: null,
      batches_committed: 0,
      updated_at: null,
    });
    await runTo(api, id, { kind: "paused" });
    await api.database.query(
      `UPDATE etl.etl_state SET last_processed_value = '2024-01-01 00:00:00.123456+00', last_processed_id = '9007199254740993',
         watermark_fingerprint = 'f', scan_position = '{a,"b, c"}', fingerprint = 'f', batch_no = 4 WHERE pipeline_id = $1`,
      [id],
    );
    expect((await api.get("/pipelines/film_dim/state")).body).toEqual({
      pipeline_id: id,
      last_processed_value: "2024-01-01 00:00:00.123456+00",
      last_processed_id: "9007199254740993",
      scan_position: ["a", "b, c"],
      batches_committed: 4,
      updated_at: expect.stringMatching(/Z$/),
    });
  });

  it("keeps or forgets the checkpoint on request, but not while a runner holds the pipeline", async () => {
    const id = await createPipeline(api, "film_dim");
    await runTo(api, id, { kind: "paused" });
    await api.database.query(
      `UPDATE etl.etl_state SET last_processed_value = '7', watermark_fingerprint = 'old', scan_position = '{9}',
         fingerprint = 'old' WHERE pipeline_id = $1`,
      [id],
    );
    const kept = await api.post(`/pipelines/${id}/state/keep?confirm=true`);
    expect(kept.body).toMatchObject({ last_processed_value: "7", scan_position: null });
    const reset = await api.post(`/pipelines/film_dim/state/reset?confirm=true`);
    expect(reset.body).toMatchObject({ last_processed_value: null, scan_position: null });
    await api.store.requests.run(id as never, "api");
    await api.store.queue.claimNext(crypto.randomUUID(), 30_000);
    const refused = await api.post(`/pipelines/${id}/state/reset`);
    expect(refused).toMatchObject({ status: 409, body: { code: "STATUS_CONFLICT", pipeline_status: "RUNNING" } });
  });

  it("R6.1 lists the runs newest first, in pages, and reads each", async () => {
    const id = await createPipeline(api, "film_dim");
    const claims: Claim[] = [];
    for (let run = 0; run < 3; run++) claims.unshift(await runTo(api, id, { kind: "succeeded" }));
    const first = (await api.get(`/api/v1/pipelines/${id}/runs?limit=2`)).body;
    const second = (await api.get(`/pipelines/film_dim/runs?limit=2&after=${first.next}`)).body;
    const runs = [...first.items, ...second.items];
    expect(runs.map((run) => run.id)).toEqual(claims.map(({ runId }) => runId));
    expect(second.next).toBeNull();
    expect((await api.get(`/pipelines/${id}/runs/${runs[0].id}`)).body).toEqual(runs[0]);
    expect(runs[0]).toEqual({
      id: expect.stringMatching(UUID),
      pipeline_id: id,
      pipeline_name: "film_dim",
      kind: "load",
      run_request: 3,
      attempt: expect.any(Number),
      status: "SUCCESS",
      trigger: "api",
      config_version: 1,
      applied_version: 1,
      runner_id: expect.stringMatching(UUID),
      started_at: expect.stringMatching(/Z$/),
      finished_at: expect.stringMatching(/Z$/),
      duration_ms: expect.any(Number),
      resumed: false,
      notes: [],
      rows_read: 0,
      rows_written: 0,
      rows_unchanged: 0,
      rows_deduplicated: 0,
      rows_rejected: 0,
      rows_dropped: 0,
      rows_added: 0,
      rows_deleted: 0,
      batches: 0,
      estimated_rows: null,
      data_path: null,
      strategy: null,
      rows_per_second: 0,
      bytes: 0,
      read_ms: 0,
      transform_ms: 0,
      write_ms: 0,
      error_code: null,
      error: null,
    });
  });

  it("does not show a run under another pipeline, and says which id is wrong", async () => {
    const id = await createPipeline(api, "film_dim");
    await createPipeline(api, "other");
    const { runId } = await runTo(api, id, { kind: "succeeded" });
    for (const path of [`other/runs/${runId}`, `film_dim/runs/${randomUUID()}`, "film_dim/runs/nonsense"]) {
      expect(await api.get(`/pipelines/${path}`)).toMatchObject({ status: 404, body: { code: "RUN_NOT_FOUND" } });
    }
    expect(await api.get("/pipelines/other/runs")).toMatchObject({ body: { items: [], next: null } });
    for (const after of ["nonsense", randomUUID(), `1.${randomUUID()}.1`, `x.${randomUUID()}`]) {
      const refused = await api.get(`/pipelines/film_dim/runs?after=${after}`);
      expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: "/after" }] } });
    }
  });
});
