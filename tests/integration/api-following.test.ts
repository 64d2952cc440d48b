import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ChangeListener } from "../../src/control-plane/changes/change-listener.ts";
import type { PipelineId } from "../../src/domain/pipeline.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import {
  type Answer,
  claim,
  createPipeline,
  errorsOf,
  expectProblem,
  LEASE_MS,
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

/** What has arrived so far, to prove that an answer waits. */
function sending(path: string): { answer: Promise<Answer>; arrived(): boolean } {
  let done = false;
  const answer = api.get(path);
  void answer.finally(() => {
    done = true;
  });
  return { answer, arrived: () => done };
}

const failure = { code: "DATABASE_BUSY", error: "It was busy." } as const;

async function claimAgain(id: string): Promise<Claim> {
  const claimed = await api.store.queue.claimNext(randomUUID(), LEASE_MS);
  if (claimed?.pipeline.id !== id) throw new Error("the pipeline was not claimed");
  return claimed;
}

describe("waiting for a run", () => {
  it("answers when it has ended", async () => {
    const id = await createPipeline(api, "film");
    const claimed = await claim(api, id);
    const { answer, arrived } = sending(`/api/v1/pipelines/${id}/runs/${claimed.runId}?wait=60s`);
    expect(await api.get(`/pipelines/${id}/runs/${claimed.runId}?wait=200ms`)).toMatchObject({
      status: 200,
      body: { status: "RUNNING" },
    });
    expect(arrived()).toBe(false);
    await api.store.queue.finishRun(claimed, { kind: "succeeded" });
    expect(await answer).toMatchObject({ status: 200, body: { id: claimed.runId, status: "SUCCESS" } });
    expect(await api.get(`/pipelines/${id}/runs/${claimed.runId}?wait=60s`)).toMatchObject({
      body: { status: "SUCCESS" },
    });
  });

  it("answers 404 when the pipeline is deleted meanwhile", async () => {
    const id = await createPipeline(api, "film");
    await api.post(`/pipelines/${id}/run`);
    const { answer } = sending(`/pipelines/${id}/status?wait=60s`);
    await api.get(`/pipelines/${id}/status?wait=100ms`);
    await api.delete(`/pipelines/${id}`);
    expectProblem(await answer, "PIPELINE_NOT_FOUND");
  });

  it.each(["abc", "-1", "61s", "60001ms", "1m", "", "1e3"])("refuses to wait %j", async (wait) => {
    const id = await createPipeline(api, "film");
    for (const path of [`status?wait=${wait}`, `runs/${randomUUID()}?wait=${wait}`]) {
      const answer = await api.get(`/pipelines/${id}/${path}`);
      expectProblem(answer, "INVALID_REQUEST");
      expect(Object.keys(errorsOf(answer))).toEqual(["/wait"]);
    }
  });
});

describe("following a request", () => {
  it("leads from the request through every attempt and another runner to the end", async () => {
    const id = await createPipeline(api, "film");
    const { run_request } = (await api.post(`/pipelines/${id}/run`)).body;
    expect(run_request).toBe(1);
    const { answer, arrived } = sending(`/api/v1/pipelines/${id}/status?wait=60s&run_request=1`);
    const first = await claimAgain(id);
    const second = await api.store.queue.startNextAttempt(first, failure);
    await api.store.queue.finishRun(second, { kind: "handed_back" });
    const third = await claimAgain(id);
    expect((await api.get(`/pipelines/${id}/status?wait=200ms&run_request=1`)).body).toMatchObject({
      status: "RUNNING",
      over: false,
      last_run: { id: third.runId },
    });
    expect(arrived()).toBe(false);
    await api.store.queue.finishRun(third, { kind: "succeeded" });
    expect((await answer).body).toMatchObject({ status: "IDLE", over: true, last_run: { id: third.runId } });
    const { items } = (await api.get(`/pipelines/${id}/runs?run_request=1`)).body;
    expect(items.map(({ id }: { id: string }) => id)).toEqual([third, second, first].map(({ runId }) => runId));
  });

  it("is not led astray by the next request", async () => {
    const id = await createPipeline(api, "film");
    const first = await claim(api, id);
    const { answer } = sending(`/pipelines/${id}/status?wait=60s&run_request=1`);
    await api.store.queue.finishRun(first, { kind: "failed", mayPass: true, ...failure });
    const { body } = await api.post(`/pipelines/${id}/run`);
    expect(body).toMatchObject({ run_request: 2 });
    const mine = (await answer).body;
    expect(mine).toMatchObject({ run_request: 1, over: true, last_run: { id: first.runId, status: "FAILED" } });
    const second = await claimAgain(id);
    expect((await api.get(`/pipelines/${id}/status?wait=60s&run_request=1`)).body).toMatchObject({
      status: "RUNNING",
      over: true,
      last_run: { id: first.runId },
    });
    expect((await api.get(`/pipelines/${id}/status`)).body).toMatchObject({
      run_request: 2,
      over: false,
      last_run: { id: second.runId },
    });
  });

  it("asking again while it waits or runs is the same request; a resume and a schedule are new ones", async () => {
    const id = await createPipeline(api, "film");
    const ask = async () => (await api.post(`/pipelines/${id}/run`)).body.run_request;
    expect([await ask(), await ask()]).toEqual([1, 1]);
    const claimed = await claimAgain(id);
    expect(await ask()).toBe(1);
    await api.post(`/pipelines/${id}/pause`);
    await api.store.queue.finishRun(claimed, { kind: "paused" });
    expect((await api.get(`/pipelines/${id}/status?wait=60s&run_request=1`)).body).toMatchObject({ over: true });
    expect(await ask()).toBe(2);
    await api.database.query("UPDATE etl.etl_pipelines SET status = 'IDLE', run_requested_at = NULL");
    await api.database.query("UPDATE etl.etl_pipelines SET status = 'RUN_REQUESTED'");
    expect((await api.get(`/pipelines/${id}`)).body.run_request).toBe(3);
  });

  it("counts a lost runner to the same request", async () => {
    const id = await createPipeline(api, "film");
    const lost = await claim(api, id);
    await api.database.query(
      "UPDATE etl.etl_runs SET lease_expires_at = now() - interval '1 minute' WHERE status = 'RUNNING'",
    );
    expect(await api.store.queue.rescueExpired(randomUUID())).toMatchObject([{ id, status: "RUN_REQUESTED" }]);
    const next = await claimAgain(id);
    const { items } = (await api.get(`/pipelines/${id}/runs?run_request=1`)).body;
    expect(items.map(({ id }: { id: string }) => id)).toEqual([next.runId, lost.runId]);
  });
});

describe("the listener behind it", () => {
  it("hears a change of status, of the configuration and a new run, of its pipeline only; and no batch", async () => {
    const id = (await createPipeline(api, "film")) as PipelineId;
    const other = await createPipeline(api, "other");
    const listener = new ChangeListener(api.store.changes);
    const heard: string[] = [];
    const subscription = await api.store.changes.onChange((changed) => void heard.push(String(changed)));
    try {
      const listening = await listener.listen(id);
      // Longer than any test may take: only a change ends it.
      const change = async (what: () => Promise<unknown>): Promise<void> => {
        await Promise.all([listening.next(600_000), what()]);
      };
      await listening.next(0); // that it began to listen counts as one
      await change(() => api.patch(`/pipelines/${id}`, { batch_size: 3 }));
      await change(() => api.post(`/pipelines/${id}/run`));
      await change(() => claimAgain(id));
      // This connection may hear of a change a moment later than the listener's.
      const heardOfIt = (): number => heard.filter((changed) => changed === id).length;
      await until("all three are heard of", () => heardOfIt() === 3);
      heard.length = 0;
      await api.database.query(
        "UPDATE etl.etl_runs SET batches = batches + 1, lease_expires_at = now() + interval '1 minute' WHERE pipeline_id = $1",
        [id],
      );
      await api.post(`/pipelines/${other}/run`);
      await change(() => api.post(`/pipelines/${id}/pause`));
      await until("the pause is heard of", () => heardOfIt() > 0);
      expect(heardOfIt()).toBe(1);
      expect(heard).toContain(other);
    } finally {
      await subscription.close();
      await listener.close();
    }
  });

  it("hears again after its connection was cut", async () => {
    const id = (await createPipeline(api, "film")) as PipelineId;
    await api.post(`/pipelines/${id}/run`);
    const { answer } = sending(`/pipelines/${id}/status?wait=60s`);
    await api.get(`/pipelines/${id}/status?wait=100ms`);
    const cut = await api.database.query(
      "SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN vitrina_changes%'",
    );
    expect(cut).toEqual([{ cut: true }]);
    await api.store.queue.finishRun(await claimAgain(id), { kind: "succeeded" });
    expect((await answer).body).toMatchObject({ over: true, status: "IDLE" });
  });
});

describe("stopping the server", () => {
  it("answers everybody who waits with how things are, and does not hang", async () => {
    const stopping = await startTestApi();
    const id = await createPipeline(stopping, "film");
    await stopping.post(`/pipelines/${id}/run`);
    const waiting = stopping.get(`/pipelines/${id}/status?wait=60s`);
    await stopping.get(`/pipelines/${id}/status?wait=100ms`);
    await stopping.stop();
    expect(await waiting).toMatchObject({ status: 200, body: { status: "RUN_REQUESTED", over: false } });
  });
});
