import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ReconcileReport, Verdict } from "../../src/domain/reconcile.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import {
  claim as claimLoad,
  createPipeline,
  expectProblem,
  LEASE_MS,
  rowOf,
  runTo,
  startTestApi,
  type TestApi,
} from "../support/api-client.ts";
import { until } from "../support/until.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(() => api.database.forgetPipelines());
afterAll(() => api.stop());

const NOTHING = { count: 0, keys: [] };
const REPORT: ReconcileReport = {
  source: {
    rows_read: 2,
    rows: 2,
    rows_duplicate: 0,
    rows_refused: 0,
    key_min: { id: "1" },
    key_max: { id: "2" },
    incremental_key_min: null,
    incremental_key_max: null,
  },
  target: {
    rows: 1,
    key_min: { id: "1" },
    key_max: { id: "1" },
    incremental_key_min: null,
    incremental_key_max: null,
  },
  missing: { count: 1, keys: [{ id: "2" }] },
  extra: NOTHING,
  different: NOTHING,
  pending: NOTHING,
  compared_columns: ["id"],
  passes: 1,
  notes: [],
};

/** As a runner would take it. */
async function claim(): Promise<Claim> {
  const claimed = await api.store.queue.claimNext(randomUUID(), LEASE_MS, "read");
  if (claimed === undefined) throw new Error("there was nothing to claim");
  return claimed;
}

/** As a runner that has compared would. */
async function judge(claimed: Claim, verdict: Verdict): Promise<void> {
  await api.store.reconciles.keepFindings(claimed, { verdict, report: REPORT });
  await api.store.queue.finishRun(claimed, { kind: "succeeded" });
}

const LOST = { code: "LEASE_LOST" };

describe("asking for a reconcile", () => {
  it("R3.2 GET on the documents' path gives the last one, and says that there is none", async () => {
    await createPipeline(api, "film");
    expectProblem(await api.get("/pipelines/film/reconcile"), "RECONCILE_NOT_FOUND");
    await api.post("/pipelines/film/reconcile");
    await judge(await claim(), "DIFFERENT");
    const first = await api.get("/pipelines/film/reconcile");
    expect(first).toMatchObject({ status: 200, body: { status: "DIFFERENT", report: { missing: { count: 1 } } } });
    const { body } = await api.post("/pipelines/film/reconcile");
    expect((await api.get("/api/v1/pipelines/film/reconcile")).body).toMatchObject({ id: body.id, status: "WAITING" });
  });

  it("R7 R3.2 only writes the wish down, and answers 202 with where the result will be", async () => {
    const id = await createPipeline(api, "film");
    const answer = await api.post("/api/v1/pipelines/film/reconcile");
    expect(answer).toMatchObject({
      status: 202,
      body: { pipeline_id: id, status: "WAITING", requested_by: "local", report: null, rows_compared: 0 },
    });
    const location = answer.headers.get("location") as string;
    expect(location).toBe(`/api/v1/pipelines/${id}/reconciles/${answer.body.id}`);
    expect(await api.get(location)).toMatchObject({ status: 200, body: answer.body });
  });

  it("R7 gives the one that waits or runs, and a new one after it has ended", async () => {
    const id = await createPipeline(api, "film");
    const asked = await Promise.all(Array.from({ length: 5 }, () => api.post(`/pipelines/${id}/reconcile`)));
    expect(new Set(asked.map(({ body }) => body.id)).size).toBe(1);
    const claimed = await claim();
    expect(claimed).toMatchObject({ kind: "reconcile", runId: asked[0]?.body.id });
    expect(await api.store.queue.claimNext(randomUUID(), LEASE_MS, "read")).toBeUndefined();
    expect(await api.post(`/pipelines/${id}/reconcile`)).toMatchObject({
      status: 202,
      body: { id: claimed.runId, status: "RUNNING", config_version: 1 },
    });
    await judge(claimed, "DIFFERENT");
    const next = await api.post(`/pipelines/${id}/reconcile`);
    expect(next.body.id).not.toBe(claimed.runId);
    expect(await api.get(`/pipelines/film/reconciles/${claimed.runId}`)).toMatchObject({
      body: { status: "DIFFERENT", rows_compared: 2, report: JSON.parse(JSON.stringify(REPORT)), error: null },
    });
  });

  it("R7 needs neither an enabled nor an idle pipeline", async () => {
    await createPipeline(api, "off", { enabled: false });
    expect(await api.post("/pipelines/off/reconcile")).toMatchObject({ status: 202 });
    expect((await claim()).pipeline).toMatchObject({ name: "off", enabled: false });
  });

  it("goes with its pipeline when that is deleted, and its runner is told so", async () => {
    const id = await createPipeline(api, "film");
    await api.post("/pipelines/film/reconcile");
    const claimed = await claim();
    expect(await api.store.queue.extendLease(claimed, LEASE_MS)).toBe("RUNNING");
    expect(await api.delete(`/pipelines/${id}`)).toMatchObject({ status: 204 });
    expect(await api.store.queue.extendLease(claimed, LEASE_MS)).toBeUndefined();
    await expect(judge(claimed, "MATCH")).rejects.toMatchObject(LOST);
  });
});

describe("the reconciles of a pipeline", () => {
  it("are listed newest first, by pages", async () => {
    const id = await createPipeline(api, "film");
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      made.unshift((await api.post(`/pipelines/${id}/reconcile`)).body.id);
      await judge(await claim(), "MATCH");
    }
    const first = (await api.get(`/pipelines/${id}/reconciles?limit=3`)).body;
    const second = (await api.get(`/pipelines/${id}/reconciles?limit=3&after=${first.next}`)).body;
    const items = [...first.items, ...second.items];
    expect(items.map((item: { id: string }) => item.id)).toEqual(made);
    expect(second.next).toBeNull();
  });

  it("say that there is no such pipeline or reconcile", async () => {
    await createPipeline(api, "film");
    expectProblem(await api.post("/pipelines/nothing/reconcile"), "PIPELINE_NOT_FOUND");
    expectProblem(await api.get("/pipelines/nothing/reconciles"), "PIPELINE_NOT_FOUND");
    expectProblem(await api.get(`/pipelines/film/reconciles/${randomUUID()}`), "RECONCILE_NOT_FOUND");
    expectProblem(await api.get("/pipelines/film/reconciles/x"), "RECONCILE_NOT_FOUND");
    expectProblem(await api.get("/pipelines/film/reconciles?limit=0"), "INVALID_REQUEST");
  });
});

describe("the run of a reconcile", () => {
  it("R6.1 is in the history under the same id, and its kind tells it apart", async () => {
    const id = await createPipeline(api, "film");
    const load = await runTo(api, id, { kind: "succeeded" });
    const { body: asked } = await api.post(`/pipelines/${id}/reconcile`);
    const path = `/pipelines/${id}/runs`;
    const waiting = { id: asked.id, kind: "reconcile", status: "REQUESTED", runner_id: null, duration_ms: 0 };
    expect((await api.get(`${path}/${asked.id}`)).body).toMatchObject(waiting);
    const claimed = await claim();
    await api.store.reconciles.noteCompared(claimed, 1);
    const running = {
      ...waiting,
      status: "RUNNING",
      runner_id: claimed.runnerId,
      rows_read: 1,
      duration_ms: expect.any(Number),
    };
    expect((await api.get(`${path}/${asked.id}`)).body).toMatchObject(running);
    expect((await api.get(`/pipelines/${id}/reconcile`)).body).toMatchObject({ status: "RUNNING", rows_compared: 1 });
    await judge(claimed, "DIFFERENT");
    const { items } = (await api.get(path)).body;
    expect(items).toMatchObject([
      {
        id: asked.id,
        kind: "reconcile",
        status: "SUCCESS",
        run_request: 0,
        rows_read: 2,
        rows_written: 0,
        data_path: null,
      },
      { id: load.runId, kind: "load", status: "SUCCESS", run_request: 1 },
    ]);
    for (const [kind, ids] of [
      ["load", [load.runId]],
      ["reconcile", [asked.id]],
      ["restore", []],
    ] as const) {
      for (const list of [path, "/runs"]) {
        const found = (await api.get(`${list}?kind=${kind}`)).body.items;
        expect(found.map((run: { id: string }) => run.id)).toEqual(ids);
      }
    }
    expectProblem(await api.get("/runs?kind=other"), "INVALID_REQUEST");
  });

  it("R7 has no part in the status of the pipeline: neither its last run nor what is asked of it", async () => {
    const id = await createPipeline(api, "film");
    await api.post(`/pipelines/${id}/reconcile`);
    const idle = { status: "IDLE", over: true, last_run: null };
    expect((await api.get(`/pipelines/${id}/status`)).body).toMatchObject(idle);
    expect((await api.get(`/pipelines/${id}/status?run_request=0`)).body).toMatchObject(idle);
    const reading = await claim();
    const before = await rowOf(api, id);
    await judge(reading, "MATCH");
    expect(await rowOf(api, id)).toEqual(before);

    await api.post(`/pipelines/${id}/reconcile`);
    const beside = await claim();
    const load = await claimLoad(api, id);
    await api.post(`/pipelines/${id}/cancel`);
    expect(await api.store.queue.extendLease(load, LEASE_MS)).toBe("CANCEL_REQUESTED");
    expect(await api.store.queue.extendLease(beside, LEASE_MS)).toBe("RUNNING");
    expect((await api.get(`/pipelines/${id}/status`)).body.last_run).toMatchObject({ id: load.runId, kind: "load" });
    expect(await api.store.queue.finishRun(load, { kind: "cancelled" })).toBe("IDLE");
    await judge(beside, "MATCH");
    expect((await api.get(`/pipelines/${id}/status`)).body.last_run).toMatchObject({ id: load.runId });
  });

  it("R4.7 the losses of one lane are not counted in the other", async () => {
    const id = await createPipeline(api, "film");
    await api.post(`/pipelines/${id}/run`);
    for (let loss = 0; loss < 2; loss += 1) {
      expect(await api.store.queue.claimNext(randomUUID(), LEASE_MS)).toBeDefined();
      await expireAll();
      await api.store.queue.rescueExpired(randomUUID());
    }
    // Between two losses, and newer than they are: it says nothing about the loads.
    await api.post(`/pipelines/${id}/reconcile`);
    await judge(await claim(), "MATCH");
    await api.store.queue.claimNext(randomUUID(), LEASE_MS);
    await expireAll();
    expect(await api.store.queue.rescueExpired(randomUUID())).toMatchObject([{ kind: "load", status: "FAILED" }]);
  });
});

const expireAll = (): Promise<unknown> =>
  api.database.query("UPDATE etl.etl_runs SET lease_expires_at = now() - interval '1 second' WHERE status = 'RUNNING'");

describe("the lease of a reconcile", () => {
  it("R4.7 passes to another runner when it has run out, and the first can change nothing any more", async () => {
    const id = await createPipeline(api, "film");
    const { body: asked } = await api.post("/pipelines/film/reconcile");
    const late = await claim();
    await api.store.reconciles.keepFindings(late, { verdict: "MATCH", report: REPORT });
    await expireAll();
    expect(await api.store.queue.rescueExpired(randomUUID())).toMatchObject([
      { id, runId: asked.id, kind: "reconcile", code: null },
    ]);
    expect((await api.get("/pipelines/film/reconcile")).body).toMatchObject({ status: "WAITING", report: null });
    const next = await claim();
    expect(next).toMatchObject({ runId: late.runId, epoch: late.epoch + 1, attempt: 2 });
    expect(await api.store.queue.extendLease(late, LEASE_MS)).toBeUndefined();
    await expect(api.store.reconciles.noteCompared(late, 9)).rejects.toMatchObject(LOST);
    await expect(judge(late, "MATCH")).rejects.toMatchObject(LOST);
    await expect(api.store.queue.finishRun(late, { kind: "succeeded" })).rejects.toMatchObject(LOST);
    expect((await api.get("/pipelines/film/reconcile")).body).toMatchObject({ status: "RUNNING", rows_compared: 0 });
    const failure = { code: "DATABASE_BUSY", error: "It took too long." } as const;
    await api.store.queue.finishRun(next, { kind: "failed", mayPass: true, ...failure });
    expect((await api.get("/pipelines/film/reconciles")).body.items).toMatchObject([
      { status: "INCONCLUSIVE", error_code: "DATABASE_BUSY", error: "It took too long.", report: null },
    ]);
  });

  it("R4.7 is not passed on for ever: after three losses the reconcile fails", async () => {
    await createPipeline(api, "film");
    await api.post("/pipelines/film/reconcile");
    for (let loss = 0; loss < 3; loss += 1) {
      await claim();
      await expireAll();
      await api.store.queue.rescueExpired(randomUUID());
    }
    expect(await api.store.queue.claimNext(randomUUID(), LEASE_MS, "read")).toBeUndefined();
    expect((await api.get("/pipelines/film/reconcile")).body).toMatchObject({
      status: "FAILED",
      error_code: "RUNNER_LOST_REPEATEDLY",
    });
    expect((await api.get("/pipelines/film")).body).toMatchObject({ status: "IDLE" });
  });

  it("R7 is given up without a loss when the runner stops, and wakes the runners", async () => {
    await createPipeline(api, "film");
    await api.post("/pipelines/film/reconcile");
    let woken = 0;
    const subscription = await api.store.queue.onWork(() => {
      woken += 1;
    });
    const before = woken;
    for (let n = 0; n < 4; n += 1) {
      expect(await api.store.queue.finishRun(await claim(), { kind: "handed_back" })).toBeUndefined();
    }
    expect((await api.get("/pipelines/film/reconciles")).body.items).toMatchObject([{ status: "WAITING" }]);
    await until("the runners are woken", () => woken > before);
    await subscription.close();
  });
});
