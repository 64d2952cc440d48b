import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ReconcileReport } from "../../src/domain/reconcile.ts";
import type { ReconcileClaim } from "../../src/meta-store/ports/reconciles.ts";
import { createPipeline, expectProblem, LEASE_MS, startTestApi, type TestApi } from "../support/api-client.ts";

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
async function claim(): Promise<ReconcileClaim> {
  const claimed = await api.store.reconciles.claim(randomUUID(), LEASE_MS);
  if (claimed === undefined) throw new Error("there was nothing to claim");
  return claimed;
}

describe("asking for a reconcile", () => {
  it("R3.2 GET on the documents' path gives the last one, and says that there is none", async () => {
    await createPipeline(api, "film");
    expectProblem(await api.get("/pipelines/film/reconcile"), "RECONCILE_NOT_FOUND");
    await api.post("/pipelines/film/reconcile");
    await api.store.reconciles.finish(await claim(), { status: "DIFFERENT", report: REPORT });
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
    expect(await api.store.reconciles.claim(randomUUID(), LEASE_MS)).toBeUndefined();
    expect(await api.post(`/pipelines/${id}/reconcile`)).toMatchObject({
      status: 202,
      body: { id: claimed.id, status: "RUNNING", config_version: 1 },
    });
    expect(await api.store.reconciles.finish(claimed, { status: "DIFFERENT", report: REPORT })).toBe(true);
    const next = await api.post(`/pipelines/${id}/reconcile`);
    expect(next.body.id).not.toBe(claimed.id);
    expect(await api.get(`/pipelines/film/reconciles/${claimed.id}`)).toMatchObject({
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
    expect(await api.store.reconciles.extend(claimed, LEASE_MS, 1)).toBe(true);
    expect(await api.delete(`/pipelines/${id}`)).toMatchObject({ status: 204 });
    expect(await api.store.reconciles.extend(claimed, LEASE_MS, 2)).toBe(false);
    expect(await api.store.reconciles.finish(claimed, { status: "MATCH", report: REPORT })).toBe(false);
  });
});

describe("the reconciles of a pipeline", () => {
  it("are listed newest first, by pages", async () => {
    const id = await createPipeline(api, "film");
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      made.unshift((await api.post(`/pipelines/${id}/reconcile`)).body.id);
      await api.store.reconciles.finish(await claim(), { status: "MATCH", report: REPORT });
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

describe("the lease of a reconcile", () => {
  it("R4.7 passes to another runner when it has run out, and the first can change nothing any more", async () => {
    await createPipeline(api, "film");
    await api.post("/pipelines/film/reconcile");
    const late = await claim();
    await api.database.query("UPDATE etl.etl_reconciles SET lease_expires_at = now() - interval '1 second'");
    const next = await claim();
    expect(next).toMatchObject({ id: late.id, epoch: late.epoch + 1 });
    expect(await api.store.reconciles.extend(late, LEASE_MS, 9)).toBe(false);
    expect(await api.store.reconciles.finish(late, { status: "MATCH", report: REPORT })).toBe(false);
    const failure = { code: "DATABASE_BUSY", error: "It took too long." } as const;
    expect(await api.store.reconciles.finish(next, { status: "INCONCLUSIVE", failure })).toBe(true);
    expect((await api.get("/pipelines/film/reconciles")).body.items).toMatchObject([
      { status: "INCONCLUSIVE", error_code: "DATABASE_BUSY", error: "It took too long.", report: null },
    ]);
  });

  it("R7 is given up without a loss when the runner stops, and wakes the runners", async () => {
    await createPipeline(api, "film");
    await api.post("/pipelines/film/reconcile");
    let woken = 0;
    const subscription = await api.store.queue.onWork(() => {
      woken += 1;
    });
    const before = woken;
    for (let n = 0; n < 4; n += 1)
      expect(await api.store.reconciles.finish(await claim(), { status: "WAITING" })).toBe(true);
    expect((await api.get("/pipelines/film/reconciles")).body.items).toMatchObject([{ status: "WAITING" }]);
    await subscription.close();
    expect(woken).toBeGreaterThan(before);
  });
});
